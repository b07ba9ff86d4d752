// SPDX-License-Identifier: Apache-2.0
#include "load/row_check.h"

#include <catch2/catch.hpp>
#include <vector>

#include "chunker/row.h"

using namespace millrace;
using namespace millrace::load;
using namespace std::chrono_literals;
using worker_protocol::RowEntry;

namespace {

constexpr std::uint32_t packet = 1600;
const Time start{1h};
const StreamId stream{77};

struct Fixture {
  explicit Fixture(Phase phase = Phase::uniform)
      : schedule({.streams = 4, .phase = phase, .warm_up = 0s}) {
    schedule.start(start);
    check.open(stream, stream_name("run", {1, 5}));
  }

  // The row of packet n of the stream, as it was sent.
  RowEntry row(std::uint64_t n) const {
    return {.stream = stream, .seq = n, .begin = n * packet, .size = packet};
  }
  std::vector<std::byte> sent(std::uint64_t n) const {
    std::vector<std::byte> bytes(2 * packet);
    content.write(1, 5 + n, bytes);
    return bytes;
  }
  void look_at(const RowEntry& it) { check.look_at(it, sent(it.begin / packet), start); }
  const WorkerOutcome& seen() { return check.outcome(); }

  Schedule schedule;
  Content content{schedule, FrameType{}};
  std::vector<Vanishing> vanishings = std::vector<Vanishing>(4);
  RunFacts run{schedule, content, "run", true, vanishings};
  RowCheck check{run, packet, Element::s16};
};

}  // namespace

TEST_CASE("rows that come in order as they were sent are right") {
  Fixture at;
  for (std::uint64_t n = 0; n < 3; ++n) at.look_at(at.row(n));
  RowEntry last = at.row(3);
  last.flags = flag::end | flag::last;
  at.look_at(last);
  CHECK(at.seen().framed == 4);
  CHECK(at.seen().lost + at.seen().repeated + at.seen().damaged + at.seen().unknown == 0);
  CHECK(at.seen().frames_ended == 4 * packet);
}

TEST_CASE("a row that never came is lost, unless a gap says so") {
  Fixture at;
  at.look_at(at.row(0));
  at.look_at(at.row(2));
  CHECK(at.seen().lost == packet);
  RowEntry after_gap = at.row(4);
  after_gap.gap = packet;
  after_gap.flags = flag::gap;
  at.look_at(after_gap);
  CHECK(at.seen().lost == packet);
  CHECK(at.seen().shed == packet);
}

TEST_CASE("a row that comes again, or late, is counted as such") {
  Fixture at;
  at.look_at(at.row(0));
  at.look_at(at.row(0));
  at.look_at(at.row(1));
  at.look_at(at.row(0));
  CHECK(at.seen().repeated == 2);
}

TEST_CASE("a row with a wrong value, or another stream's, is damaged") {
  Fixture at;
  auto values = at.sent(0);
  values[3199] ^= std::byte{1};
  at.check.look_at(at.row(0), values, start);
  at.check.look_at(at.row(1), at.sent(2), start);
  CHECK(at.seen().damaged == 2);
}

TEST_CASE("rows of others are not judged") {
  Fixture at;
  const StreamId other{78};
  at.check.open(other, "somebody-else");
  at.check.look_at({.stream = other, .begin = 5, .size = packet}, at.sent(0), start);
  CHECK(at.seen().unknown == 1);
  CHECK(at.seen().framed == 0);
}

TEST_CASE("a row counts from when the packet was due that ends its window") {
  Fixture at;
  const Time due = at.schedule.due(1, 5);
  at.check.look_at(at.row(0), at.sent(0), due + 2ms);
  CHECK(at.seen().rows.all().greatest() == 2ms);
  Fixture wide;  // the window ends with the next packet
  RowEntry row = wide.row(0);
  row.right = 400;
  wide.check.look_at(row, wide.sent(0), due + 103ms);
  CHECK(wide.seen().rows.all().greatest() == 3ms);
}

TEST_CASE("what an end cut has no time of its own") {
  Fixture at;
  RowEntry row = at.row(0);
  row.flags = flag::last;
  at.look_at(row);
  CHECK(at.seen().rows.all().count() == 0);
}

TEST_CASE("an ABORT counts from when the client vanished, and its stream's frames do not") {
  Fixture at;
  at.look_at(at.row(0));
  at.vanishings[1].at = to_wire(start + 1s);
  at.vanishings[1].first = 5;
  at.check.look_at_mark({.stream = stream, .begin = packet, .flags = flag::abort | flag::end},
                        start + 1s + 3ms);
  CHECK(at.seen().vanished.greatest() == 3ms);
  CHECK(at.seen().frames_ended == 0);
}

TEST_CASE("an ABORT of a stream that the client did not hang up on has no time") {
  Fixture at;
  at.vanishings[1].at = to_wire(start + 1s);
  at.vanishings[1].first = 4;
  at.check.look_at_mark({.stream = stream, .flags = flag::abort}, start + 2s);
  CHECK(at.seen().vanished.count() == 0);
}

TEST_CASE("a row behind the last one is one too many") {
  Fixture at;
  RowEntry last = at.row(0);
  last.flags = flag::end | flag::last;
  at.look_at(last);
  at.look_at(at.row(1));
  CHECK(at.seen().repeated == 1);
}

TEST_CASE("every row has an answer of its own, and those of others none") {
  Fixture at;
  std::string answer;
  at.check.answer(at.row(2), answer);
  CHECK(answer == R"("1-5-3200")");
  at.check.answer({.stream = StreamId{78}}, answer);
  CHECK(answer == "null");
}

TEST_CASE("in step, the last row of each packet counts from when all were sent") {
  Fixture at(Phase::step);
  const StreamId other{78};
  at.check.open(other, stream_name("run", {2, 5}));
  const Time due = at.schedule.due(0, 5);
  at.check.look_at(at.row(0), at.sent(0), due + 1ms);
  RowEntry row = at.row(0);
  row.stream = other;
  at.check.look_at(row, at.sent(0), due + 4ms);
  at.check.look_at(at.row(1), at.sent(1), due + 101ms);
  CHECK(at.seen().bursts.count() == 1);
  CHECK(at.seen().bursts.greatest() == 4ms);
}
