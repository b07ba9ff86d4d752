// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace millrace {

// The system calls on files of this program (write, fdatasync, fsync, ftruncate, fallocate,
// renameat, unlinkat, futimens, openat) count down, and kill the process at zero. Which
// part of the call is done before is drawn: none, all, or a part of the bytes.

// Shared by a process and its parent.
struct SyncedFile {
  std::atomic<std::uint64_t> inode = 0;  // the file that was synced last
  std::atomic<std::uint64_t> size = 0;   // its size at that time
};

// From now on the `calls`-th call kills this process; 0: none does. `draw` decides how.
void kill_after(std::uint64_t calls, std::uint64_t draw, SyncedFile* synced);

}  // namespace millrace
