// SPDX-License-Identifier: Apache-2.0
#include "streams/resume_points.h"

#include <catch2/catch.hpp>

#include "streams/frames/packet_counts.h"

using namespace millrace;

namespace {

using Place = std::array<std::uint64_t, 3>;

Place place(const ResumePoints& points, std::uint64_t position) {
  const ResumePoints::Place& place = points.place(position);
  return {place.seq, place.begin, place.commands};
}

}  // namespace

TEST_CASE("the place is the begin of the segment while it is short") {
  ResumePoints points({}, 25);
  points.cut(0, 10, false);
  points.cut(1, 20, false);
  points.done();
  CHECK(place(points, 25) == Place{0, 0, 0});
  CHECK(place(points, 26) == Place{1, 10, 0});
  points.done();
  CHECK(place(points, 26) == Place{2, 20, 0});
  points.received(true);
  points.fed(true);
  points.cut(2, 26, true);
  CHECK(place(points, 26) == Place{2, 20, 0});
  points.done();
  CHECK(place(points, 26) == Place{3, 26, 1});
  CHECK(points.next_row() == 3);
}

TEST_CASE("places and commands of a stream that is opened anew continue") {
  ResumePoints points({.seq = 7, .commands = 3, .begin = 70}, 25);
  CHECK(place(points, 70) == Place{7, 70, 3});
  CHECK(points.commands() == 3);
  CHECK(points.next_row() == 7);
  CHECK(place(points, 95) == Place{7, 70, 3});
}

TEST_CASE("a command that waits has no effect before a row that is cut before it") {
  ResumePoints points({}, 0);
  points.received(false);  // rejected
  points.received(true);
  points.received(false);
  points.cut(0, 10, false);
  points.done();
  CHECK(place(points, 15) == Place{1, 10, 1});
  points.fed(false);
  points.cut(1, 20, false);
  points.done();
  CHECK(place(points, 25) == Place{2, 20, 3});
}

TEST_CASE("a command that ends a segment has its effect after the last row of the segment") {
  ResumePoints points({}, 0);
  points.received(true);
  points.fed(true);
  points.cut(0, 10, false);
  points.cut(1, 15, true);
  points.done();
  CHECK(place(points, 15) == Place{1, 10, 0});
  points.done();
  CHECK(place(points, 16) == Place{2, 15, 1});
}

TEST_CASE("an endpoint that ends a segment keeps the effect of an earlier command") {
  ResumePoints points({}, 0);
  points.received(true);
  points.fed(true);
  points.cut(0, 10, true);
  points.cut(1, 20, false);  // an endpoint ends the next segment
  points.cut(2, 25, true);
  points.done();
  points.done();
  CHECK(place(points, 30) == Place{2, 20, 1});
}

TEST_CASE("packets of changing lengths are found by their input frames") {
  PacketCounts counts(5, 1000);
  counts.add(1, 320);  // 1000
  counts.add(1, 320);  // 1320
  counts.add(1, 160);  // 1640
  counts.add(3, 480);  // 1800: lost
  counts.add(1, 960);  // 2280
  CHECK(counts.packets() == 12);
  const auto at = [&](std::uint64_t input_frame) {
    const auto packet = counts.at(input_frame);
    return std::pair(packet.number, packet.begin);
  };
  using Packet = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(at(1000) == Packet{5, 1000});
  CHECK(at(1319) == Packet{5, 1000});
  CHECK(at(1320) == Packet{6, 1320});
  CHECK(at(1799) == Packet{7, 1640});
  CHECK(at(2120) == Packet{10, 2120});
  CHECK(at(2279) == Packet{10, 2120});
  CHECK(at(2280) == Packet{11, 2280});
  CHECK(at(3240) == Packet{12, 3240});
  counts.forget(2279);
  CHECK(at(2279) == Packet{10, 2120});
  CHECK(at(3000) == Packet{11, 2280});
}

TEST_CASE("packets without frames are before the next packet") {
  PacketCounts counts(0, 0);
  counts.add(1, 320);
  counts.add(2, 0);
  CHECK(counts.at(320).number == 3);
  counts.add(1, 320);
  CHECK(counts.at(320).number == 3);
  CHECK(counts.at(319).number == 0);
  counts.add(0, 0);
  CHECK(counts.packets() == 4);
}
