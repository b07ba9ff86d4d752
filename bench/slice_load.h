// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "recording/format/stream_meta.h"

namespace millrace::bench {

// The load of recorder_bench, and its control: a program that copies, checksums and writes the
// same frames, with as many syncs.

// The slices to write, of `streams` streams in turn.
struct SliceLoad {
  std::string folder = "/tmp";
  std::uint64_t streams = 2000;
  std::size_t slice = 3200;  // bytes of frames
  std::uint64_t megabytes = 256;

  std::uint64_t slices() const { return (megabytes << 20) / slice; }
};

// Random frames, more than the cache of the processor holds: whole slices.
std::vector<std::byte> frames_of(const SliceLoad& load);
// The frames of a slice.
inline Bytes frames_of(const std::vector<std::byte>& frames, std::uint64_t slice,
                       std::size_t bytes) {
  return Bytes(frames).subspan(slice * bytes % frames.size(), bytes);
}

// The meta of stream `number`.
recording::StreamMeta meta_of(std::uint64_t number);

// Copies, checksums and writes all slices, into a file of its own.
void write_bare(const SliceLoad& load, const std::vector<std::byte>& frames);

}  // namespace millrace::bench
