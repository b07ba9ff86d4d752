// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/host/device_reader.h"
#include "gpu/host/row_format.h"

// The kernels, for the current CUDA device. They exist only in a build with CUDA.
//
// Each function puts its work on `stream`, a stream of the current device, and does not wait for
// it. Pointers are to device memory that must stay valid until the work is done. Functions throw
// DeviceFailure if the launch fails. A later call reports an error during the work.
//
// Thread-safe.
namespace millrace::cuda {

// The rows of a slab that holds frames, and the control arrays that locate the window in each row.
// The arrays have `rows` entries, in frames. Requires: each window fits into its row.
struct SlabRows {
  const std::byte* frames = nullptr;    // [rows, width, values] of format.frames, 16-byte aligned
  const std::int32_t* left = nullptr;   // left context
  const std::int32_t* size = nullptr;   // body; 0: a padding row
  const std::int32_t* right = nullptr;  // right context
  std::uint32_t rows = 0, width = 0;
};

// Makes the tensor [rows, width, values] of format.dtype from the rows: converts the frames, fills
// the columns around each window as `format` says, and sets rows of size 0 to zeros. The result is
// bit for bit that of RowWriter on the host. `tensor` is 16-byte aligned and does not overlap with
// the frames. Requires: there is a conversion from format.frames to format.dtype (convert.h).
void expand(const SlabRows& rows, const RowFormat& format, std::byte* tensor, DeviceStream stream);

// Loads the kernel that expands this format onto the current device. Otherwise the first expand()
// loads it, which may wait for all work on the device. Throws DeviceFailure, also if the kernel was
// not built for this kind of device.
void load_expand(const RowFormat& format);

// The state of all slots: [slots + 1, row_bytes], contiguous. The last row is a spare one, for
// padding rows, which have slot = slots. Any row_bytes and any alignment work; multiples of 16
// bytes are fast.
struct Arena {
  std::byte* state = nullptr;
  std::size_t row_bytes = 0;
};

// In the next three functions `slot` has `rows` entries, each from 0 to slots.

// Sets the state of slot[i] to zeros for each i < rows with reset[i] != 0.
void reset_rows(const Arena& arena, const std::int32_t* slot, const std::uint8_t* reset,
                std::uint32_t rows, DeviceStream stream);

// Copies the state of slot[i] to to[i] for each i < rows. `to` is [rows, row_bytes], contiguous.
void gather_rows(const Arena& arena, const std::int32_t* slot, std::uint32_t rows, std::byte* to,
                 DeviceStream stream);

// Copies from[i] to the state of slot[i] for each i < rows. `from` is [rows, row_bytes],
// contiguous. The slots must be distinct, except the spare one, whose state is undefined
// afterwards.
void scatter_rows(const Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                  const std::byte* from, DeviceStream stream);

}  // namespace millrace::cuda
