// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/host/device_reader.h"
#include "gpu/host/row_format.h"

// What runs on a CUDA device. All pointers are the device's, all work is put on `stream`, nothing
// waits. Throws DeviceFailure where the device does not take it. Only where there is CUDA.
namespace millrace::cuda {

// The rows of a slab as frames, and the control arrays that say where in each row they stand.
struct SlabRows {
  const std::byte* frames = nullptr;  // [rows, width, values] of format.frames, aligned to 16
  const std::int32_t* left = nullptr;
  const std::int32_t* size = nullptr;
  const std::int32_t* right = nullptr;
  std::uint32_t rows = 0, width = 0;
};

// The tensor of those rows, as format says: frames converted to format.dtype, the columns outside
// of each window filled, rows of size 0 all zeros. Bit for bit what RowWriter makes on the host.
// `tensor` is aligned to 16 bytes and does not overlap with the frames.
void expand(const SlabRows& rows, const RowFormat& format, std::byte* tensor, DeviceStream stream);

// Brings what expands this format onto the current device. Otherwise the first launch does, which
// may wait for all that runs there. Throws also where it was not built for such a device.
void load_expand(const RowFormat& format);

// The state of slots: [slots + 1, row_bytes], contiguous; the last row is the spare one of padding
// rows. Any row_bytes and any alignment work; multiples of 16 are fast.
struct Arena {
  std::byte* state = nullptr;
  std::size_t row_bytes = 0;
};

// Zeros the state of slot[i] for each i < rows with reset[i] != 0.
void reset_rows(const Arena& arena, const std::int32_t* slot, const std::uint8_t* reset,
                std::uint32_t rows, DeviceStream stream);

// to[i] = state of slot[i]; `to` is [rows, row_bytes], contiguous.
void gather_rows(const Arena& arena, const std::int32_t* slot, std::uint32_t rows, std::byte* to,
                 DeviceStream stream);

// The state of slot[i] = from[i]. Slots are distinct, but for the spare one, which ends up with
// anything.
void scatter_rows(const Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                  const std::byte* from, DeviceStream stream);

}  // namespace millrace::cuda
