// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/recording/crash_loop/killed_calls.h"
#include "tests/recording/slice_plan.h"

namespace millrace::recording {

// What a process that writes recordings has done: in memory shared with its parent, which reads it
// after the process was killed.
struct Progress {
  static constexpr std::size_t most_files = 3;

  // A recording file. Slices are counted over all files of the process.
  struct File {
    std::atomic<std::uint64_t> number = 0;     // set before the file is created; 0: not begun
    std::atomic<std::uint64_t> first = 0;      // its first slice
    std::atomic<std::uint64_t> added = 0;      // the slice after those that may be in the file
    std::atomic<std::uint64_t> committed = 0;  // the slice after those that are synced
    std::atomic<std::uint64_t> removing = 0;   // a stream that is being removed; 0: none
    std::atomic<bool> removed = false;         // rewrite_without() has returned
  };

  std::atomic<std::uint64_t> first_stream = 0;  // of the process
  std::array<File, most_files> files{};
  SyncedFile synced{};
};

// The slices of a process, the same in the process and in its parent.
SlicePlan plan_of(std::uint64_t seed, std::uint64_t first_stream);

// Writes recordings, as a service does: recovers the newest file, then writes and seals files, and
// removes streams. The error is a line.
std::string live(const std::string& directory, std::uint64_t seed, Progress& progress);

}  // namespace millrace::recording
