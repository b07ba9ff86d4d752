// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "base/companion.h"

namespace millrace::training {

// Finds the ratio of frames to entries from the lengths of streams and their companions. A
// companion of n frames with k frames per entry has ⌈n / k⌉ entries. Confined to one thread.
//
// Lengths that no ratio divides may fit one by coincidence: labels of librosa have ⌊n / k⌋ + 1
// entries, those of Kaldi one or two less. So a ratio must divide every length, or fit companions
// of eight different numbers of entries, of which the largest is twice the least: this excludes
// Kaldi. Then no other ratio may fit as librosa counts.
class CompanionRatio {
 public:
  // False: no ratio fits this stream and those before.
  bool add(std::uint64_t frames, std::uint64_t entries);

  // True if exactly one ratio fits, or if all lengths are equal and one divides them.
  bool found() const;
  // False: further lengths could show that the ratio fits by coincidence.
  bool is_certain() const;
  // Sets frames_per_entry and entries_per_frame. Requires: found().
  void set(CompanionFormat& format) const;
  // The ratios that fit: "160 to 163 frames per entry".
  std::string text() const;

 private:
  std::uint64_t of_equal_lengths() const;
  bool divides_all() const;

  static constexpr std::size_t sufficient = 8;  // different numbers of entries
  static constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t least_frames_ = 1, most_frames_ = most;    // per entry; none if least > most
  std::uint64_t least_entries_ = 1, most_entries_ = most;  // per frame
  std::uint64_t least_centred_ = 1, most_centred_ = most;  // frames per entry, as librosa counts
  std::set<std::uint64_t> lengths_, entries_;              // those of streams with frames
};

}  // namespace millrace::training
