// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/enum_names.h"

namespace millrace {

// The type of one value of a companion. Little-endian.
enum class CompanionElement : std::uint8_t { s16, s32, s64, u8, f16, f32 };

constexpr std::size_t size_of(CompanionElement element) {
  switch (element) {
    case CompanionElement::u8: return 1;
    case CompanionElement::s16:
    case CompanionElement::f16: return 2;
    case CompanionElement::s32:
    case CompanionElement::f32: return 4;
    case CompanionElement::s64: return 8;
  }
  return 0;
}

// Entries of a companion: [begin, begin + count).
struct EntryRange {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  bool operator==(const EntryRange&) const = default;
};

// A companion: an array that belongs to a stream and is cut at the borders of bodies (labels,
// alignments, clean speech). It has an entry for each `frames_per_entry` frames, or
// `entries_per_frame` entries for each frame; one of the two is 1. An entry belongs to the body
// that has its first frame.
struct CompanionFormat {
  std::string name;
  CompanionElement element = CompanionElement::f32;
  std::uint32_t values = 1;  // values of an entry
  std::uint32_t frames_per_entry = 1;
  std::uint32_t entries_per_frame = 1;

  constexpr std::size_t entry_bytes() const { return size_of(element) * values; }
  // The entries of a stream of `frames` frames.
  constexpr std::uint64_t entries_of(std::uint64_t frames) const { return entries_before(frames); }
  // The entries of the body [begin, begin + size); frames are counted without gaps.
  constexpr EntryRange entries_in(std::uint64_t begin, std::uint64_t size) const {
    const std::uint64_t first = entries_before(begin);
    return {first, entries_before(begin + size) - first};
  }
  // The most entries of a body of `size` frames.
  constexpr std::uint64_t most_entries(std::uint64_t size) const { return entries_before(size); }
  bool operator==(const CompanionFormat&) const = default;

 private:
  // The entries whose first frame is before `frame`.
  constexpr std::uint64_t entries_before(std::uint64_t frame) const {
    return (frame + frames_per_entry - 1) / frames_per_entry * entries_per_frame;
  }
};

}  // namespace millrace
