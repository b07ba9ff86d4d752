// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "base/companion.h"

namespace millrace::training {

// Finds the ratio of frames to entries from the lengths of streams and their companions. A
// companion of n frames with k frames per entry has ⌈n / k⌉ entries. Confined to one thread.
//
// Lengths that no ratio divides may fit one by coincidence: labels of librosa have ⌊n / k⌋ + 1
// entries, those of Kaldi one or two less, others are rounded. So a ratio must divide every length,
// or follow from the differences of lengths and of entries, whatever is added before the division:
// of all k, one alone has (d - 1) k < Δn < (d + 1) k for all pairs of streams with d = Δentries.
// Eight different numbers of entries exclude ratios that are not whole.
class CompanionRatio {
 public:
  // False: no ratio fits this stream and those before.
  bool add(std::uint64_t frames, std::uint64_t entries);

  // True if exactly one ratio fits, and not by coincidence, or if all lengths are equal and one
  // divides them.
  bool found() const;
  // False: further lengths could show that the ratio fits by coincidence.
  bool is_certain() const;
  // Sets frames_per_entry and entries_per_frame. Requires: found().
  void set(CompanionFormat& format) const;
  // The ratios that fit: "160 to 163 frames per entry".
  std::string text() const;

 private:
  struct Extent {
    std::uint64_t shortest = 0, longest = 0;  // in frames
  };

  void compare(std::uint64_t frames, std::uint64_t entries);
  std::uint64_t of_equal_lengths() const;
  bool divides_all() const;

  static constexpr std::size_t sufficient = 8;  // different numbers of entries
  static constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t least_frames_ = 1, most_frames_ = most;    // per entry; none if least > most
  std::uint64_t least_entries_ = 1, most_entries_ = most;  // per frame
  std::uint64_t least_step_ = 1, most_step_ = most;        // frames per entry, by the differences
  std::set<std::uint64_t> lengths_;                        // those of streams with frames
  std::map<std::uint64_t, Extent> extents_;  // those of streams with this number of entries
};

}  // namespace millrace::training
