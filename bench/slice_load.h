// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "recording/format/stream_meta.h"

namespace millrace::bench {

// The control of recorder_bench: a program that copies, checksums and writes
// the same frames, with as many syncs.

inline constexpr std::size_t commit_bytes = 4 << 20;

// The slices to write, of `streams` streams in turn.
struct SliceLoad {
  std::string folder = "/tmp";
  std::uint64_t streams = 2000;
  std::size_t slice = 3200;  // bytes of frames
  std::uint64_t megabytes = 256;
  bool sync = true;

  std::uint64_t slices() const { return (megabytes << 20) / slice; }
};

// A directory in `folder`, removed by the destructor.
class BenchFolder {
 public:
  explicit BenchFolder(const std::string& folder);
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;

  const std::string& path() const { return path_; }
  // A new recording file 1; an earlier one is removed.
  FileDescriptor create() const;

 private:
  std::string path_;
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

// Copies, checksums and writes all slices.
void write_bare(FileDescriptor file, const SliceLoad& load, const std::vector<std::byte>& frames);

// CPU time of the process, and of the calling thread, in seconds.
double process_cpu();
double thread_cpu();

double median(std::vector<double> values);

}  // namespace millrace::bench
