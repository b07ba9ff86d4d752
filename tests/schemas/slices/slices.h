// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "schemas/slices/slice.h"

namespace millrace::recording {

// A message in memory at an address that is a multiple of 8, plus `shift`.
class PlacedMessage {
 public:
  explicit PlacedMessage(Bytes bytes, std::size_t shift = 0)
      : memory_(bytes.size() / 8 + 2), shift_(shift), size_(bytes.size()) {
    std::memcpy(reinterpret_cast<std::byte*>(memory_.data()) + shift, bytes.data(), size_);
  }
  Bytes bytes() const { return std::as_bytes(std::span(memory_)).subspan(shift_, size_); }

 private:
  std::vector<std::uint64_t> memory_;
  std::size_t shift_, size_;
};

inline std::vector<std::byte> frames_of(std::size_t bytes) {
  std::vector<std::byte> frames(bytes);
  for (std::size_t i = 0; i < bytes; ++i) frames[i] = static_cast<std::byte>(i * 7);
  return frames;
}

// A slice with everything that a slice can have: 2-byte frames, 3 + 2 of them.
struct FullSlice {
  std::vector<RecordedEvent> events{
      {{.kind = Event::Kind::frames, .count = 3}, from_wire(1'000)},
      {{.kind = Event::Kind::flush, .mark = 9}, from_wire(2'000)},
      {{.kind = Event::Kind::flush, .cause = Cause::endpoint}, from_wire(2'500)},
      {{.kind = Event::Kind::gap, .cause = Cause::load, .count = 40}, from_wire(3'000)},
      {{.kind = Event::Kind::size, .cause = Cause::drawn, .count = 1600}, from_wire(3'001)},
      {{.kind = Event::Kind::frames, .count = 2}, from_wire(4'000)},
      {{.kind = Event::Kind::message, .count = 6}, from_wire(4'001), R"("Hugo")"},
      {{.kind = Event::Kind::set, .count = 13}, from_wire(4'002), R"({"lang":"de"})"},
      {{.kind = Event::Kind::end}, from_wire(5'000)}};
  std::vector<std::byte> frames = frames_of(10);
  std::vector<RecordedAnswer> answers{
      {.seq = 4, .batch = BatchId{70}, .kind = Answer::Kind::json, .data = R"({"text":"yes"})"},
      {.seq = 5, .batch = BatchId{71}, .kind = Answer::Kind::error, .data = "no memory"},
      {.seq = 6, .batch = BatchId{71}, .kind = Answer::Kind::text, .data = ""}};

  Slice slice() const {
    return {.stream = 17,
            .first_event = 30,
            .begin = 48'000,
            .size = 3200,
            .events = events,
            .frames = frames,
            .answers = answers,
            .lost = LostEvents{.first_event = 28, .begin = 47'000, .reason = DropReason::disk_full},
            .closing = StreamTotals{.rows = 12,
                                    .frames = 46'000,
                                    .lost = 2'045,
                                    .digest = 0xdeadbeef,
                                    .closing = 2,
                                    .complete = true}};
  }
};

}  // namespace millrace::recording
