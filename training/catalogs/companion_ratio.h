// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/companion.h"

namespace millrace::training {

// Finds the ratio of frames to entries from the lengths of streams and their companions. A
// companion of n frames with k frames per entry has ⌈n / k⌉ entries. Confined to one thread.
class CompanionRatio {
 public:
  // False: no ratio fits this stream and those before.
  bool add(std::uint64_t frames, std::uint64_t entries);

  // True if exactly one ratio fits.
  bool found() const;
  // Sets frames_per_entry and entries_per_frame. Requires: found().
  void set(CompanionFormat& format) const;
  // The ratios that fit: "160 to 163 frames per entry".
  std::string text() const;

 private:
  static constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t least_frames_ = 1, most_frames_ = most;    // per entry; none if least > most
  std::uint64_t least_entries_ = 1, most_entries_ = most;  // per frame
};

}  // namespace millrace::training
