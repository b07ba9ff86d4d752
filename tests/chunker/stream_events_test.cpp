// SPDX-License-Identifier: Apache-2.0
#include "chunker/stream_events.h"

#include <catch2/catch.hpp>

#include "chunker/chunker.h"

namespace millrace {
namespace {

std::string refusal(StreamEvents& events, std::string_view kind, std::uint64_t count) {
  const auto added = events.add(kind, count);
  return added ? "" : added.error();
}

TEST_CASE("events: each word adds its event") {
  StreamEvents events({.size = 4});
  std::vector<Event::Kind> kinds;
  for (const char* word : {"frames", "size", "flush", "reset", "gap", "message", "set", "end"})
    CHECK(refusal(events, word, 1).empty());
  for (const Event& event : events.events()) kinds.push_back(event.kind);
  using Kind = Event::Kind;
  CHECK(kinds == std::vector{Kind::frames, Kind::size, Kind::flush, Kind::reset, Kind::gap,
                             Kind::message, Kind::set, Kind::end});
}

TEST_CASE("events: an open anew is the first event, at a position and row that a stream can have") {
  StreamEvents events({.size = 4});
  CHECK_FALSE(events.open(max_position + 1, 0));
  CHECK_FALSE(events.open(0, max_position + 1));
  CHECK(events.open(max_position - 2, 7));
  CHECK_FALSE(events.open(0, 0));
  CHECK(refusal(events, "frames", 3) == "the stream must have at most 9007199254740992 frames");
  CHECK(refusal(events, "frames", 2).empty());
  REQUIRE(events.events().size() == 2);
  CHECK(events.events()[0].count == max_position - 2);
  CHECK(events.events()[0].rows == 7);
}

TEST_CASE("events: events after the end are ignored, even invalid ones") {
  StreamEvents events({.size = 4});
  CHECK(refusal(events, "abort", 0).empty());
  CHECK(events.ended());
  CHECK(refusal(events, "nonsense", 0).empty());
  CHECK(events.events().size() == 1);
}

TEST_CASE("events: an invalid event is refused, and not added") {
  StreamEvents events({.size = 4, .step = 2});
  CHECK(refusal(events, "stop", 0).starts_with("\"stop\" must be \"frames\""));
  CHECK(refusal(events, "size", 2) == "step = \"2\" must be 0 if sizes change");
  CHECK(refusal(events, "gap", 0) == "a gap must have at least 1 frame");
  CHECK(refusal(events, "gap", std::uint64_t{1} << 53).empty());
  CHECK(refusal(events, "frames", 1) == "the stream must have at most 9007199254740992 frames");
  CHECK(events.events().size() == 1);
}

TEST_CASE("events: rows are as wide as the largest size") {
  StreamEvents events({.size = 4, .left = 2});
  CHECK(events.width() == 6);
  for (const std::uint64_t size : {7, 5}) CHECK(refusal(events, "size", size).empty());
  CHECK(events.width() == 9);
}

TEST_CASE("events: with sizes, a size is one of them or its first body") {
  StreamEvents events({.spec = {.size = 8, .first = 11}, .sizes = {.sizes = SizeList({4, 8})}});
  for (const std::uint64_t body : {4, 7, 8, 11}) CHECK(refusal(events, "size", body).empty());
  CHECK(refusal(events, "size", 5) == "size 5 must be one of sizes, or its first body");
  CHECK(refusal(events, "size", 2) == "size 2 must be one of sizes, or its first body");
  CHECK(events.width() == 11);
}

TEST_CASE("events: size events of a rule with sizes replace first") {
  StreamEvents events({.spec = {.size = 8, .first = 11}, .sizes = {.sizes = SizeList({4, 8})}});
  CHECK(events.spec().first == 11);
  CHECK(refusal(events, "size", 7).empty());
  CHECK(events.spec().first == 0);
}

}  // namespace
}  // namespace millrace
