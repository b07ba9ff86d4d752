// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/companion_ratio.h"

#include <algorithm>

namespace millrace::training {
namespace {

std::string range(std::uint64_t least, std::uint64_t most, const char* unit) {
  std::string text = std::to_string(least);
  if (most > least) text += " to " + std::to_string(most);
  return text + " " + unit;
}

}  // namespace

bool CompanionRatio::add(std::uint64_t frames, std::uint64_t entries) {
  if (frames == 0 && entries == 0) return true;
  if (frames == 0 || entries == 0) return false;
  lengths_.insert(frames);
  entries_.insert(entries);
  // ⌈frames / k⌉ = entries: frames / entries <= k < frames / (entries - 1).
  least_frames_ = std::max(least_frames_, (frames - 1) / entries + 1);
  if (entries > 1) most_frames_ = std::min(most_frames_, (frames - 1) / (entries - 1));
  // ⌊frames / k⌋ + 1 = entries.
  least_centred_ = std::max(least_centred_, frames / entries + 1);
  if (entries > 1) most_centred_ = std::min(most_centred_, frames / (entries - 1));
  if (entries % frames == 0) {
    least_entries_ = std::max(least_entries_, entries / frames);
    most_entries_ = std::min(most_entries_, entries / frames);
  } else {
    most_entries_ = 0;
  }
  return least_frames_ <= most_frames_ || least_entries_ <= most_entries_;
}

// The ratio of streams of one length; 0: no ratio divides it.
std::uint64_t CompanionRatio::of_equal_lengths() const {
  const bool equal = lengths_.size() == 1 && *lengths_.begin() % *entries_.begin() == 0;
  return equal ? *lengths_.begin() / *entries_.begin() : 0;
}

bool CompanionRatio::divides_all() const {
  return std::ranges::all_of(lengths_,
                             [this](std::uint64_t length) { return length % least_frames_ == 0; });
}

bool CompanionRatio::is_certain() const {
  if (entries_.size() < sufficient || *entries_.rbegin() < 2 * *entries_.begin()) return false;
  const bool same = least_centred_ == least_frames_ && most_centred_ == least_frames_;
  return same || least_centred_ > most_centred_;
}

bool CompanionRatio::found() const {
  if (of_equal_lengths() > 0) return true;
  const bool one_to_one = least_frames_ == 1 && most_frames_ == 1;
  const bool several_frames = least_frames_ <= most_frames_;
  const bool several_entries = least_entries_ <= most_entries_;
  if (several_frames && several_entries) return one_to_one && least_entries_ == 1;
  if (!several_frames) return least_entries_ == most_entries_;
  return least_frames_ == most_frames_ && (is_certain() || divides_all());
}

void CompanionRatio::set(CompanionFormat& format) const {
  const bool several_frames = least_frames_ <= most_frames_;
  const std::uint64_t equal = of_equal_lengths();
  format.frames_per_entry =
      several_frames ? static_cast<std::uint32_t>(equal > 0 ? equal : least_frames_) : 1;
  format.entries_per_frame = several_frames ? 1 : static_cast<std::uint32_t>(least_entries_);
}

std::string CompanionRatio::text() const {
  std::string text;
  if (least_frames_ <= most_frames_) text = range(least_frames_, most_frames_, "frames per entry");
  if (least_entries_ <= most_entries_ && most_entries_ > 1)
    text +=
        (text.empty() ? "" : " or ") + range(least_entries_, most_entries_, "entries per frame");
  if (least_frames_ == most_frames_ && most_entries_ <= 1) text += ", perhaps by coincidence";
  return text;
}

}  // namespace millrace::training
