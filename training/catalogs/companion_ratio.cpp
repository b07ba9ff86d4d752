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
  compare(frames, entries);
  // ⌈frames / k⌉ = entries: frames / entries <= k < frames / (entries - 1).
  least_frames_ = std::max(least_frames_, (frames - 1) / entries + 1);
  if (entries > 1) most_frames_ = std::min(most_frames_, (frames - 1) / (entries - 1));
  if (entries % frames == 0) {
    least_entries_ = std::max(least_entries_, entries / frames);
    most_entries_ = std::min(most_entries_, entries / frames);
  } else {
    most_entries_ = 0;
  }
  return least_frames_ <= most_frames_ || least_entries_ <= most_entries_;
}

// Compares a stream with those before. If several have equal entries, the longest and the shortest
// suffice.
void CompanionRatio::compare(std::uint64_t frames, std::uint64_t entries) {
  Extent& own = extents_.try_emplace(entries, Extent{frames, frames}).first->second;
  own = {std::min(own.shortest, frames), std::max(own.longest, frames)};
  for (const auto& [others, extent] : extents_) {
    const bool is_more = entries > others;
    const Extent &high = is_more ? own : extent, &low = is_more ? extent : own;
    const std::uint64_t difference = is_more ? entries - others : others - entries;
    // ⌊(frames + any) / k⌋ = entries: (difference - 1) k < difference of the frames < (difference +
    // 1) k.
    const std::uint64_t widest = high.longest - std::min(high.longest, low.shortest);
    const std::uint64_t closest = high.shortest - std::min(high.shortest, low.longest);
    least_step_ = std::max(least_step_, widest / (difference + 1) + 1);
    if (difference > 1)
      most_step_ =
          std::min(most_step_, (std::max<std::uint64_t>(closest, 1) - 1) / (difference - 1));
  }
}

// The ratio of streams of one length; 0: no ratio divides it.
std::uint64_t CompanionRatio::of_equal_lengths() const {
  const bool equal = lengths_.size() == 1 && *lengths_.begin() % extents_.begin()->first == 0;
  return equal ? *lengths_.begin() / extents_.begin()->first : 0;
}

bool CompanionRatio::divides_all() const {
  return std::ranges::all_of(lengths_,
                             [this](std::uint64_t length) { return length % least_frames_ == 0; });
}

bool CompanionRatio::is_certain() const {
  if (extents_.size() < sufficient) return false;
  if (least_frames_ > most_frames_)
    return true;  // several entries per frame: no rounding fits them
  return least_step_ == least_frames_ && most_step_ == least_frames_;
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
