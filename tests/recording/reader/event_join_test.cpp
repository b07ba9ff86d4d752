// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/event_join.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/recording/reader/read_items.h"

namespace millrace::recording {
namespace {

using Kind = Event::Kind;
using Added = EventJoin::Added;

RecordedEvent open(std::uint64_t position = 0, std::uint64_t rows = 0) {
  return {{.kind = Kind::open, .count = position, .rows = rows}, Time(Duration(1))};
}
RecordedEvent frames(std::uint64_t count) {
  return {{.kind = Kind::frames, .count = count}, Time(Duration(2))};
}
RecordedEvent event(Kind kind, std::uint64_t count = 0) {
  return {{.kind = kind, .count = count}, Time(Duration(3))};
}

// Adds slices to a join, with frames of one byte: the value of frame p is p.
class Slices {
 public:
  Added add(std::uint32_t number, std::uint64_t first_event, std::uint64_t begin,
            std::vector<RecordedEvent> events, Slice more = {}) {
    std::vector<std::byte> values;
    for (const RecordedEvent& timed : events) {
      if (timed.event.kind != Kind::frames) continue;
      for (std::uint64_t i = 0; i < timed.event.count; ++i)
        values.push_back(static_cast<std::byte>(begin + values.size()));
    }
    more.first_event = first_event;
    more.begin = begin;
    more.events = events;
    more.frames = values;
    const Added added = join.add(number, more, "damaged");
    printed += read_all(join, &values_read);
    return added;
  }
  std::string finish(std::uint64_t end = 0) {
    join.finish(end, "no end");
    return printed += read_all(join, &values_read);
  }

  EventJoin join{1};
  std::string printed, values_read;
};

Slice in_force(std::uint32_t size) { return {.size = size}; }
Slice lost(std::uint64_t first_event, std::uint64_t begin) {
  return {.lost = LostEvents{first_event, begin, DropReason::disk_full}};
}
Slice closing() { return {.closing = StreamTotals{.rows = 5}}; }

TEST_CASE("slices that follow each other give their events and frames") {
  Slices slices;
  CHECK(slices.add(0, 0, 0, {open(), frames(2)}) == Added::joined);
  CHECK(slices.add(1, 2, 2, {frames(3), event(Kind::flush), event(Kind::end)}) == Added::joined);
  CHECK(slices.finish() == "open frames:2 frames:3 flush end ");
  CHECK(slices.values_read == std::string("\0\1\2\3\4", 5));
  CHECK(slices.join.over());
  CHECK(slices.join.missing().empty());
}

TEST_CASE(
    "a stream that is opened anew begins at its position, and its frames are counted from 0") {
  EventJoin join(1);
  const std::vector<std::byte> values(5);
  const std::vector<RecordedEvent> events{open(100, 7), frames(5), event(Kind::end)};
  CHECK(join.add(0, {.begin = 100, .events = events, .frames = values}, "damaged") ==
        Added::joined);
  CHECK(join.position() == 105);
  std::vector<RecordedEvent> read;
  while (const auto item = join.next()) read.push_back(std::get<RecordedEvent>(*item));
  REQUIRE(read.size() == 3);
  CHECK(read[0].event.count == 100);
  CHECK(read[0].event.rows == 7);
  CHECK(read[0].position == 100);
  CHECK(read[1].position == 100);
  CHECK(read[1].frame == 0);
  CHECK(read[2].position == 105);
  CHECK(read[2].frame == 5);
  CHECK(join.missing().empty());
}

TEST_CASE("parts are missing after an open anew from its position on") {
  Slices slices;
  slices.add(0, 0, 100, {open(100, 7), frames(2)});
  CHECK(slices.add(0, 0, 100, {open(100, 7), frames(2)}) == Added::known);
  slices.add(2, 4, 107, {frames(1), event(Kind::end)});
  CHECK(slices.printed == "open:100 frames:2 gap(recorder):5 frames:1 end ");
  CHECK(slices.join.missing() == std::vector<MissingPart>{{102, 107, 2, "damaged"}});
}

TEST_CASE("a slice whose open is not at its position contradicts") {
  Slices slices;
  CHECK(slices.add(0, 0, 100, {open(99, 7)}) == Added::contradicts);
  CHECK(slices.add(0, 0, 0, {open(0, (std::uint64_t{1} << 53) + 1)}) == Added::contradicts);
  CHECK(slices.add(0, 0, (std::uint64_t{1} << 53) + 1, {open((std::uint64_t{1} << 53) + 1)}) ==
        Added::contradicts);
}

TEST_CASE("a missing slice is a gap of its frames") {
  Slices slices;
  slices.add(0, 0, 0, {open(), frames(2)});
  slices.add(2, 4, 7, {frames(1), event(Kind::end)});
  CHECK(slices.printed == "open frames:2 gap(recorder):5 frames:1 end ");
  CHECK(slices.values_read == std::string("\0\1\7", 3));
  CHECK(slices.join.missing() == std::vector<MissingPart>{{2, 7, 2, "damaged"}});
}

TEST_CASE("a missing slice without frames is a reset") {
  Slices slices;
  slices.add(0, 0, 0, {open(), frames(2)});
  slices.add(2, 3, 2, {event(Kind::end)});
  CHECK(slices.printed == "open frames:2 reset(recorder) end ");
  CHECK(slices.join.missing() == std::vector<MissingPart>{{2, 2, 1, "damaged"}});
}

TEST_CASE("dropped events are named by their reason") {
  Slices slices;
  slices.add(0, 0, 0, {open(), frames(2)});
  slices.add(5, 4, 7, {event(Kind::end)}, lost(2, 2));
  CHECK(slices.join.missing() == std::vector<MissingPart>{{2, 7, 2, "not recorded: disk_full"}});
}

TEST_CASE("missing events before the dropped ones are named apart, in one gap") {
  Slices slices;
  slices.add(0, 0, 0, {open(), frames(2)});
  slices.add(5, 6, 9, {event(Kind::end)}, lost(3, 4));
  CHECK(slices.printed == "open frames:2 gap(recorder):7 end ");
  CHECK(slices.join.missing() ==
        std::vector<MissingPart>{{2, 4, 1, "damaged"}, {4, 9, 3, "not recorded: disk_full"}});
}

TEST_CASE("dropped events that a slice has after all are not lost") {
  Slices slices;
  slices.add(0, 0, 0, {open(), frames(2)});
  slices.add(1, 2, 2, {frames(1)});
  slices.add(2, 3, 3, {frames(1), event(Kind::end)}, lost(2, 2));
  CHECK(slices.printed == "open frames:2 frames:1 frames:1 end ");
  CHECK(slices.join.missing().empty());
}

TEST_CASE("a slice that comes again is given once") {
  Slices slices;
  slices.add(0, 0, 0, {open(), frames(2)});
  CHECK(slices.add(0, 0, 0, {open(), frames(2)}) == Added::known);
  // Some of its events are new.
  CHECK(slices.add(1, 1, 0, {frames(2), frames(2)}) == Added::joined);
  CHECK(slices.printed == "open frames:2 frames:2 ");
  CHECK(slices.values_read == std::string("\0\1\2\3", 4));
}

TEST_CASE("a size after missing events only if it is another one") {
  Slices slices;
  slices.add(0, 0, 0, {open(), event(Kind::size, 8), frames(1)});
  slices.add(2, 5, 2, {frames(1)}, in_force(8));
  slices.add(4, 8, 3, {frames(1)}, in_force(9));
  CHECK(slices.printed ==
        "open size:8 frames:1 gap(recorder):1 frames:1 reset(recorder) size(recorder):9 frames:1 ");
}

TEST_CASE("a stream without its begin opens with a gap") {
  Slices slices;
  slices.add(7, 9, 100, {frames(2), event(Kind::end)}, in_force(4));
  CHECK(slices.printed == "open(recorder) gap(recorder):100 size(recorder):4 frames:2 end ");
  CHECK(slices.join.missing() == std::vector<MissingPart>{{0, 100, 9, "damaged"}});
}

TEST_CASE("a stream without an end is aborted") {
  Slices slices;
  slices.add(0, 0, 0, {open(), frames(1)});
  CHECK_FALSE(slices.join.over());
  CHECK(slices.finish() == "open frames:1 abort(recorder) ");
  CHECK(slices.join.over());
  CHECK(slices.join.missing() == std::vector<MissingPart>{{1, 1, 0, "no end"}});
}

TEST_CASE("frames missing at the end are a gap if their number is known") {
  Slices slices;
  slices.add(0, 0, 0, {open(), frames(1)});
  CHECK(slices.finish(10) == "open frames:1 gap(recorder):9 abort(recorder) ");
  CHECK(slices.join.missing() == std::vector<MissingPart>{{1, 10, 0, "no end"}});
}

TEST_CASE("a stream of which nothing is left is opened and aborted") {
  Slices slices;
  CHECK(slices.finish(3) == "open(recorder) gap(recorder):3 abort(recorder) ");
}

TEST_CASE("a stream that was closed without an end is aborted before its totals") {
  Slices slices;
  slices.add(0, 0, 0, {open(), frames(1)}, closing());
  CHECK(slices.printed == "open frames:1 abort(recorder) totals:5 ");
  CHECK(slices.join.over());
  CHECK(slices.add(1, 2, 1, {frames(1)}) == Added::known);
}

TEST_CASE("answers and totals may come after the end") {
  const RecordedAnswer answer{.seq = 3, .kind = Answer::Kind::text, .data = "hello"};
  Slices slices;
  slices.add(0, 0, 0, {open(), event(Kind::end)});
  slices.add(1, 2, 0, {}, {.answers = std::span(&answer, 1)});
  slices.add(2, 2, 0, {}, closing());
  CHECK(slices.printed == "open end answer:3 totals:5 ");
}

TEST_CASE("a missing slice of answers is named") {
  Slices slices;
  slices.add(0, 0, 0, {open(), frames(4)});
  slices.add(2, 2, 4, {event(Kind::end)});
  CHECK(slices.printed == "open frames:4 end ");
  CHECK(slices.join.missing() == std::vector<MissingPart>{{4, 4, 0, "damaged"}});
}

TEST_CASE("a slice that contradicts the slices before it is left out") {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  Slices slices;
  slices.add(0, 0, 0, {open(), event(Kind::size, 2), frames(4)});
  const auto contradicts = [&](std::uint64_t first_event, std::uint64_t begin,
                               std::vector<RecordedEvent> events, Slice more = {}) {
    return slices.add(1, first_event, begin, events, more) == Added::contradicts;
  };
  CHECK(contradicts(3, 5, {frames(1)}));                             // another position
  CHECK(contradicts(2, 1, {frames(4), frames(1)}));                  // in what was given too
  CHECK(contradicts(9, 3, {frames(1)}));                             // backwards
  CHECK(contradicts(9, 5, {frames(1)}, in_force(0)));                // a size is in force
  CHECK(contradicts(most, 4, {frames(1)}, in_force(2)));             // too many events
  CHECK(contradicts(9, most, {frames(1)}, in_force(2)));             // too many frames
  CHECK(contradicts(3, 4, {event(Kind::gap, (1ull << 53) - 3)}));    // too many frames
  CHECK(contradicts(3, 4, {event(Kind::gap)}));                      // a gap of no frame
  CHECK(contradicts(3, 4, {event(Kind::size)}));                     // a size of no frame
  CHECK(contradicts(3, 4, {event(Kind::size, 1ull << 32)}));         // a size beyond 32 bits
  CHECK(contradicts(3, 4, {open()}));                                // a second begin
  CHECK(contradicts(3, 4, {event(Kind::end), event(Kind::flush)}));  // an event after the end
  CHECK(slices.printed == "open size:2 frames:4 ");
  slices.add(2, 4, 4, {event(Kind::end)}, in_force(2));
  CHECK(slices.printed == "open size:2 frames:4 reset(recorder) end ");
  CHECK(slices.add(3, 5, 4, {frames(1)}) == Added::contradicts);
}

TEST_CASE("the first event is an open, or none is given") {
  Slices slices;
  CHECK(slices.add(0, 0, 0, {frames(1)}) == Added::contradicts);
  CHECK(slices.finish() == "open(recorder) abort(recorder) ");
}

}  // namespace
}  // namespace millrace::recording
