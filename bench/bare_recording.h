// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "recording/files/directory.h"

namespace millrace::bench {

// The least work that a recorder must do, as the control of its benchmarks.

constexpr std::size_t commit_bytes = 4 << 20;

// A new directory in `folder`, removed by the destructor. Throws std::runtime_error.
class Folder {
 public:
  explicit Folder(const std::string& folder);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  // The first segment file, in place of the last one.
  FileDescriptor create() const;

 private:
  std::string path_;
};

// Throws std::system_error for an error.
void check(const Result<void, std::error_code>& result);

// Random frames: more of them than the cache of a processor holds, a multiple of `part` bytes.
std::vector<std::byte> frames_of(std::size_t part);
// The part with this number. After the last one, the first one follows.
inline Bytes part_of(const std::vector<std::byte>& frames, std::uint64_t number,
                     std::size_t bytes) {
  return Bytes(frames).subspan(number * bytes % frames.size(), bytes);
}

// Copies `parts` parts of `bytes` bytes to a buffer, and checksums, writes and, if `sync`, syncs
// the buffer every 4 MiB.
void copy_and_write(FileDescriptor file, std::uint64_t parts, std::size_t bytes, bool sync,
                    const std::vector<std::byte>& frames);

}  // namespace millrace::bench
