// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace millrace::test {

// Lets calls on files and directories of this process fail, in a test binary that is linked with
// failing_disk.cpp. While none of these exists, all calls work. Confined to one thread, and only
// one at a time.
class FailingDisk {
 public:
  FailingDisk();
  ~FailingDisk();
  FailingDisk(const FailingDisk&) = delete;
  FailingDisk& operator=(const FailingDisk&) = delete;

  // An errno; 0: the calls work.
  int write = 0;            // after an eighth of the bytes
  bool gets_space = false;  // `write` becomes 0 when a recording file is deleted
  int sync = 0;             // fdatasync
  int reserve = 0;          // fallocate
  int list = 0;             // readdir
  int set_time = 0;         // futimens
  int interrupt = 0;  // how many of the next writes end with EINTR after some bytes, or after none
  std::optional<std::uint64_t> free_bytes;  // that the file system reports

  // Places in files, from the first one up to the second, that the disk cannot read.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> unreadable;

  int writes = 0, syncs = 0;  // calls so far
  std::uint64_t read_bytes = 0;
  bool wrote_part = false;  // the next failing write fails at once
};

}  // namespace millrace::test
