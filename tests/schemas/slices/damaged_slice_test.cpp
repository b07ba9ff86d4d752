// SPDX-License-Identifier: Apache-2.0
// Messages that a damaged or forged file could have.
#include <catch2/catch.hpp>
#include <functional>

#include "schemas/slices/slice.h"
#include "tests/schemas/damage.h"
#include "tests/schemas/slices/slices.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

using Kind = Event::Kind;

// Whether the full slice is valid after this change of it.
bool valid_after(const std::function<void(FullSlice&, Slice&)>& change,
                 std::size_t frame_bytes = 2) {
  FullSlice full;
  Slice slice = full.slice();
  change(full, slice);
  slice.events = full.events;
  slice.frames = full.frames;
  slice.answers = full.answers;
  SliceEncoder encoder;
  const PlacedMessage message(encoder.encode(slice, {&slice.frames, 1}));
  SliceDecoder decoder;
  const auto decoded = decoder.slice(message.bytes(), 17, frame_bytes);
  if (!decoded) CHECK(decoded.error() == WireError::meaning);
  return decoded.has_value();
}

bool valid_with(std::size_t event, Event instead) {
  return valid_after([&](FullSlice& full, Slice&) { full.events[event].event = instead; });
}

std::uint64_t sum = 0;

// Reads every value of a decoded slice, for the sanitizers.
void read_all(Bytes bytes) {
  SliceDecoder decoder;
  if (const auto slice = decoder.slice(bytes, 17, 2)) {
    for (const RecordedEvent& event : slice->events) {
      sum += event.event.count;
      for (const char letter : event.text) sum += static_cast<std::uint64_t>(letter);
    }
    for (const std::byte frame : slice->frames) sum += static_cast<std::uint64_t>(frame);
    for (const RecordedAnswer& answer : slice->answers)
      for (const char letter : answer.data) sum += static_cast<std::uint64_t>(letter);
  }
  if (const auto parts = decoder.parts(bytes))
    for (const StreamPart& part : *parts) sum += part.frames;
}

}  // namespace

TEST_CASE("a slice whose frames and events disagree is not valid") {
  CHECK(valid_after([](FullSlice&, Slice&) {}));
  CHECK_FALSE(valid_after([](FullSlice& full, Slice&) { full.frames.resize(8); }));
  CHECK_FALSE(valid_after([](FullSlice& full, Slice&) { full.frames.resize(11); }));
  CHECK_FALSE(valid_after([](FullSlice& full, Slice&) { full.events[0].event.count = 4; }));
  CHECK_FALSE(valid_after([](FullSlice&, Slice&) {}, 4));
  CHECK_FALSE(valid_after([](FullSlice&, Slice&) {}, 0));
}

TEST_CASE("an event with a value out of its range is not valid") {
  CHECK_FALSE(valid_with(1, {.kind = static_cast<Kind>(10)}));
  CHECK_FALSE(valid_with(1, {.kind = Kind::reset, .cause = static_cast<Cause>(8)}));
  CHECK_FALSE(valid_with(1, {.kind = Kind::reset, .count = 1}));
  CHECK_FALSE(valid_with(1, {.kind = Kind::flush, .mark = std::uint64_t{1} << 53}));
  CHECK_FALSE(valid_with(3, {.kind = Kind::gap, .count = 0}));
  CHECK_FALSE(valid_with(4, {.kind = Kind::size, .count = 0}));
  CHECK_FALSE(valid_with(4, {.kind = Kind::size, .count = std::uint64_t{1} << 32}));
}

TEST_CASE("positions beyond 2^63 - 1 are not valid") {
  CHECK_FALSE(valid_with(3, {.kind = Kind::gap, .count = ~std::uint64_t{0}}));
  CHECK_FALSE(valid_with(3, {.kind = Kind::gap, .count = (std::uint64_t{1} << 63) - 48'004}));
  CHECK(valid_with(3, {.kind = Kind::gap, .count = (std::uint64_t{1} << 63) - 48'006}));
  CHECK_FALSE(valid_after([](FullSlice&, Slice& slice) { slice.begin = ~std::uint64_t{0}; }));
}

TEST_CASE("events that cannot follow each other are not valid") {
  CHECK_FALSE(valid_with(1, {.kind = Kind::open}));
  CHECK_FALSE(valid_with(1, {.kind = Kind::end}));
  CHECK(valid_with(8, {.kind = Kind::abort}));
  const auto first = [](FullSlice& full, Slice& slice) {
    full.events[1].event = {.kind = Kind::reset};
    slice.first_event = slice.begin = 0;
    slice.lost.reset();
  };
  CHECK_FALSE(valid_after(first));
  CHECK(valid_after([&](FullSlice& full, Slice& slice) {
    first(full, slice);
    full.events.insert(full.events.begin(), {{.kind = Kind::open}, {}});
  }));
}

TEST_CASE("an open whose position or number of rows is out of range is not valid") {
  const auto valid_open = [](std::uint64_t begin, std::uint64_t rows) {
    return valid_after([&](FullSlice& full, Slice& slice) {
      full.events = {{{.kind = Kind::open, .count = begin, .rows = rows}, {}}};
      full.frames.clear();
      slice.first_event = 0;
      slice.begin = begin;
      slice.lost.reset();
    });
  };
  CHECK(valid_open(1, 0));
  CHECK(valid_open((std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 53));
  CHECK_FALSE(valid_open(std::uint64_t{1} << 63, 0));
  CHECK_FALSE(valid_open(0, (std::uint64_t{1} << 53) + 1));
}

TEST_CASE("answers that are not what they are called are not valid") {
  CHECK_FALSE(valid_after([](FullSlice& full, Slice&) { full.answers[0].data = "{"; }));
  CHECK_FALSE(valid_after([](FullSlice& full, Slice&) { full.answers[2].data = "\xff"; }));
  CHECK_FALSE(valid_after(
      [](FullSlice& full, Slice&) { full.answers[2].kind = static_cast<Answer::Kind>(5); }));
}

TEST_CASE("texts that are not what they are called, or have another length, are not valid") {
  const auto valid_text = [](Kind kind, std::string_view text, std::uint64_t count) {
    return valid_after([&](FullSlice& full, Slice&) {
      full.events[7] = {{.kind = kind, .count = count}, {}, text};
    });
  };
  CHECK(valid_text(Kind::set, "{}", 2));
  CHECK(valid_text(Kind::message, "[1]", 3));
  CHECK_FALSE(valid_text(Kind::set, "[1]", 3));
  CHECK_FALSE(valid_text(Kind::message, "[1", 2));
  CHECK_FALSE(valid_text(Kind::message, "", 0));
  CHECK_FALSE(valid_text(Kind::set, "{}", 3));   // fewer bytes than the event has
  CHECK_FALSE(valid_text(Kind::set, "{} ", 2));  // more
  CHECK_FALSE(valid_text(Kind::reset, "{}", 0));
  CHECK_FALSE(valid_text(Kind::message, "1", std::uint64_t{1} << 62));
}

TEST_CASE("lost events that lie behind the slice, and unknown reasons, are not valid") {
  CHECK_FALSE(valid_after([](FullSlice&, Slice& slice) { slice.lost->first_event = 31; }));
  CHECK_FALSE(valid_after([](FullSlice&, Slice& slice) { slice.lost->begin = 48'001; }));
  CHECK_FALSE(valid_after(
      [](FullSlice&, Slice& slice) { slice.lost->reason = static_cast<DropReason>(4); }));
  CHECK_FALSE(valid_after([](FullSlice&, Slice& slice) { slice.closing->closing = 6; }));
}

TEST_CASE("impossible parts are not valid") {
  const StreamPart good{.stream = 1, .slices = 1, .begin = 10, .end = 20, .frames = 10};
  const auto valid_part = [](const StreamPart& part) {
    SliceEncoder encoder;
    SliceDecoder decoder;
    return decoder.parts(PlacedMessage(encoder.encode({&part, 1})).bytes()).has_value();
  };
  const auto changed = [&](auto change) {
    StreamPart part = good;
    change(part);
    return valid_part(part);
  };
  CHECK(valid_part(good));
  CHECK_FALSE(changed([](StreamPart& part) { part.stream = 0; }));
  CHECK_FALSE(changed([](StreamPart& part) { part.slices = 0; }));
  CHECK_FALSE(changed([](StreamPart& part) { part.end = 9; }));
  CHECK_FALSE(changed([](StreamPart& part) { part.frames = 11; }));
  CHECK_FALSE(changed([](StreamPart& part) { part.complete = true; }));
  CHECK_FALSE(changed([](StreamPart& part) { part.first_slice = ~0U, part.slices = 2; }));
}

TEST_CASE("damaged messages are read without a bad access") {
  SliceEncoder encoder;
  const FullSlice full;
  const Slice slice = full.slice();
  const Bytes encoded = encoder.encode(slice, {&slice.frames, 1});
  const std::vector<std::byte> message(encoded.begin(), encoded.end());
  damage(message, read_all);
  random_messages(message, read_all);
  CHECK(sum > 0);
}
