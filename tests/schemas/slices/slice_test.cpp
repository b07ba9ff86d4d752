// SPDX-License-Identifier: Apache-2.0
#include "schemas/slices/slice.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/schemas/slices/slices.h"
#include "tests/support/allocations.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

bool same(const RecordedEvent& a, const RecordedEvent& b) {
  return a.at == b.at && a.event.kind == b.event.kind && a.event.cause == b.event.cause &&
         a.event.count == b.event.count && a.event.mark == b.event.mark && a.text == b.text;
}

bool same(const RecordedAnswer& a, const RecordedAnswer& b) {
  return a.seq == b.seq && a.batch == b.batch && a.kind == b.kind && a.data == b.data;
}

void check_same(const Slice& a, const Slice& b) {
  CHECK(a.stream == b.stream);
  CHECK(a.first_event == b.first_event);
  CHECK(a.begin == b.begin);
  CHECK(a.size == b.size);
  CHECK(std::ranges::equal(a.events, b.events, [](auto& x, auto& y) { return same(x, y); }));
  CHECK(std::ranges::equal(a.frames, b.frames));
  CHECK(std::ranges::equal(a.answers, b.answers, [](auto& x, auto& y) { return same(x, y); }));
  CHECK(a.lost == b.lost);
  CHECK(a.closing == b.closing);
}

Bytes encode(SliceEncoder& encoder, const Slice& slice) {
  return encoder.encode(slice, {&slice.frames, 1});
}

}  // namespace

TEST_CASE("a slice with everything that it can have is decoded as it was encoded") {
  const FullSlice full;
  SliceEncoder encoder;
  const PlacedMessage message(encode(encoder, full.slice()));
  SliceDecoder decoder;
  const auto decoded = decoder.slice(message.bytes(), 17, 2);
  REQUIRE(decoded.has_value());
  check_same(*decoded, full.slice());
}

TEST_CASE("a slice without anything is decoded as it was encoded") {
  const Slice empty{.stream = 17, .first_event = 4, .begin = 12};
  SliceEncoder encoder;
  const PlacedMessage message(encoder.encode(empty, {}));
  SliceDecoder decoder;
  const auto decoded = decoder.slice(message.bytes(), 17, 2);
  REQUIRE(decoded.has_value());
  check_same(*decoded, empty);
}

TEST_CASE("a slice is decoded at every address, and with bytes behind it") {
  const FullSlice full;
  SliceEncoder encoder;
  const Bytes encoded = encode(encoder, full.slice());
  std::vector<std::byte> longer(encoded.begin(), encoded.end());
  longer.push_back(std::byte{0});
  SliceDecoder decoder;
  for (std::size_t shift = 0; shift < 8; ++shift) {
    const PlacedMessage message(longer, shift);
    const auto decoded = decoder.slice(message.bytes(), 17, 2);
    REQUIRE(decoded.has_value());
    check_same(*decoded, full.slice());
  }
}

TEST_CASE("the frames of an aligned message are read in place, and are aligned") {
  FullSlice full;
  SliceEncoder encoder;
  for (std::size_t frames = 1; frames < 20; ++frames) {
    full.events.front().event.count = frames;
    full.frames = frames_of(2 * (frames + 2));
    const Bytes encoded = encode(encoder, full.slice());
    CHECK(encoded.size() % 8 == 0);
    const PlacedMessage message(encoded);
    SliceDecoder decoder;
    const auto decoded = decoder.slice(message.bytes(), 17, 2);
    REQUIRE(decoded.has_value());
    CHECK(decoded->frames.data() > message.bytes().data());
    CHECK(decoded->frames.data() < message.bytes().data() + message.bytes().size());
    CHECK(reinterpret_cast<std::uintptr_t>(decoded->frames.data()) % 8 == 0);
  }
}

TEST_CASE("frames of several parts are one after the other in the message") {
  const FullSlice full;
  const Bytes all = full.frames;
  const std::array parts{all.first(3), all.subspan(3, 0), all.subspan(3)};
  SliceEncoder encoder;
  const PlacedMessage message(encoder.encode(full.slice(), parts));
  SliceDecoder decoder;
  CHECK(std::ranges::equal(decoder.slice(message.bytes(), 17, 2)->frames, all));
}

TEST_CASE("a message is encoded around its frames") {
  for (const std::size_t bytes : {0U, 2U, 10U, 16U}) {
    FullSlice full;
    full.frames = frames_of(bytes);
    SliceEncoder encoder, other;
    const auto around = encoder.encode_around(full.slice(), bytes);
    std::vector<std::byte> joined(around.before.begin(), around.before.end());
    joined.insert(joined.end(), full.frames.begin(), full.frames.end());
    joined.insert(joined.end(), around.after.begin(), around.after.end());
    CHECK(std::ranges::equal(joined, encode(other, full.slice())));
  }
}

TEST_CASE("the largest mark of a flush is decoded as it was encoded, and no mark is not 0") {
  const std::uint64_t largest = (std::uint64_t{1} << 53) - 1;
  std::array<RecordedEvent, 3> events{};
  for (RecordedEvent& event : events) event.event.kind = Event::Kind::flush;
  events[0].event.mark = largest;
  events[1].event.mark = 0;
  SliceEncoder encoder;
  const PlacedMessage message(
      encoder.encode({.stream = 1, .first_event = 1, .events = events}, {}));
  SliceDecoder decoder;
  const auto decoded = decoder.slice(message.bytes(), 17, 2);
  REQUIRE(decoded.has_value());
  CHECK(decoded->events[0].event.mark == largest);
  CHECK(decoded->events[1].event.mark == 0U);
  CHECK(decoded->events[2].event.mark == std::nullopt);
}

TEST_CASE("numbers of every size are decoded as they were encoded") {
  for (int bit = 1; bit < 63; ++bit) {
    const std::uint64_t number = std::uint64_t{1} << bit;
    std::array<RecordedEvent, 3> events{};
    for (RecordedEvent& event : events) event.event.kind = Event::Kind::gap;
    events[0].event.count = number - 1;
    events[1].event.count = number / 2;
    events[2].event.count = number / 2;
    SliceEncoder encoder;
    const PlacedMessage message(
        encoder.encode({.stream = 1, .first_event = 1, .events = events}, {}));
    SliceDecoder decoder;
    const auto decoded = decoder.slice(message.bytes(), 17, 2);
    REQUIRE(decoded.has_value());
    CHECK(std::ranges::equal(decoded->events, events, [](auto& a, auto& b) { return same(a, b); }));
  }
}

TEST_CASE("the parts of a recording file are decoded as they were encoded") {
  const std::vector<StreamPart> parts{{.stream = 17,
                                       .first_slice = 3,
                                       .slices = 9,
                                       .first_event = 20,
                                       .begin = 100,
                                       .end = 1'100,
                                       .frames = 900,
                                       .channel = 31'999,
                                       .closed = true,
                                       .complete = true,
                                       .lost = true},
                                      {.stream = 18, .slices = 1, .channel = 1}};
  SliceEncoder encoder;
  const PlacedMessage message(encoder.encode(parts));
  SliceDecoder decoder;
  CHECK(*decoder.parts(message.bytes()) == parts);
  CHECK(
      decoder.parts(PlacedMessage(encoder.encode(std::span<const StreamPart>())).bytes())->empty());
}

TEST_CASE("in steady state neither encoding nor decoding allocates") {
  const FullSlice full;
  SliceEncoder encoder;
  SliceDecoder decoder;
  const PlacedMessage message(encode(encoder, full.slice()));
  REQUIRE(decoder.slice(message.bytes(), 17, 2).has_value());
  const std::size_t before = test::allocations();
  encode(encoder, full.slice());
  const bool valid = decoder.slice(message.bytes(), 17, 2).has_value();
  CHECK(test::allocations() == before);
  CHECK(valid);
}

TEST_CASE("the schema is in the binary form of FlatBuffers") {
  const Bytes schema = slice_schema();
  REQUIRE(schema.size() > 8);
  CHECK(std::memcmp(schema.data() + 4, "BFBS", 4) == 0);
}
