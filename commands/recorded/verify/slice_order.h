// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "commands/recorded/verify/problems.h"
#include "schemas/slices/slice.h"

namespace millrace::recordings {

// Checks that the slices of each stream continue each other over all files: numbers of slices and
// events, positions, sizes, and the totals at the end. Slices are added in the order of the files.
// Confined to one thread.
class SliceOrder {
 public:
  // `all_files`: no recording file was deleted, so that each stream begins with its first slice.
  SliceOrder(bool all_files, Problems& problems) : all_files_(all_files), problems_(problems) {}

  // The next slice of its stream. `run` is that of the file, `number` that of the slice.
  void add(FileNumber file, const std::string& run, std::uint32_t number,
           const recording::Slice& slice);

  struct Counts {
    std::uint64_t streams = 0;
    std::uint64_t whole = 0;       // with all events from `open` to `end` or `abort`
    std::uint64_t lost_parts = 0;  // that the recorder or retention left out
  };
  Counts counts() const;

  // Where a stream is after the slices so far; 0 for an unknown stream.
  std::uint64_t position(std::uint64_t stream) const;

 private:
  struct State {
    std::uint32_t run = 0;  // index of the run
    std::uint64_t next_slice = 0;
    std::uint64_t next_event = 0;
    std::uint64_t position = 0;
    std::uint64_t frames = 0;   // recorded
    std::uint64_t gaps = 0;     // frames that gaps skipped
    std::uint32_t size = 0;     // in force; 0: that of the rule
    bool from_open = true;      // no event is missing so far
    bool lost_answers = false;  // slices without events are missing
    bool ended = false;         // by `end` or `abort`
    std::optional<recording::StreamTotals> closing{};
    bool whole = false;
  };

  void check_begin(FileNumber file, State& state, bool first, std::uint32_t number,
                   const recording::Slice& slice);
  void add_events(FileNumber file, State& state, const recording::Slice& slice);
  void check_totals(FileNumber file, State& state, const recording::Slice& slice);
  void missing(FileNumber file, State& state, const recording::Slice& slice);

  const bool all_files_;
  Problems& problems_;
  std::map<std::string, std::uint32_t> runs_;
  std::unordered_map<std::uint64_t, State> states_;
  std::uint64_t lost_parts_ = 0;
};

}  // namespace millrace::recordings
