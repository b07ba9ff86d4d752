// SPDX-License-Identifier: Apache-2.0
// Endpoints in the answers of workers: where they end segments, and which have no effect.
#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>

#include "tests/streams/live_stream.h"
#include "tests/support/allocations.h"

using namespace millrace;
using test::at;
using test::begins;
using test::ends;
using test::LiveStream;
using test::Rows;
using test::Said;

namespace {

EndpointRule by_worker() { return {.by = EndpointRule::By::worker, .max = 1000}; }

StreamSettings settings(const std::optional<EndpointRule>& rule, const Spec& spec) {
  return {.id = StreamId{5},
          .type = {},
          .format = format_of(SampleFormat::s16le, {}),
          .chunk = {.spec = spec},
          .endpoint = rule,
          .frames_limit = 1000,
          .opened = at(0)};
}

// A stream with rows of ten frames whose worker ends segments.
struct EndedStream : LiveStream {
  explicit EndedStream(const std::optional<EndpointRule>& rule = by_worker(),
                       const Spec& spec = test::tens)
      : LiveStream(settings(rule, spec)) {}

  // The answer to the oldest row ends its segment.
  void end_segment(Answer::Kind kind = Answer::Kind::none) {
    stream.done({.seq = answered++, .answer = {kind, "said", true}, .at = {}}, now);
  }
  std::uint64_t ended() const { return stats.endpoints[EndpointReason::worker].value(); }
  std::uint64_t late() const { return stats.endpoints_late.value(); }
};

constexpr std::uint64_t segment = flag::segment, last = flag::last;

}  // namespace

TEST_CASE("a worker's endpoint ends the segment after the frames that the chunker has received") {
  EndedStream live;
  live.send(13);
  live.end_segment();
  live.send(10);
  CHECK(live.rows() == Rows{{0, 0, 0, 10, 0, begins, 0},
                            {1, 10, 0, 3, 0, last, 0},
                            {2, 13, 0, 10, 0, segment, 0}});
  CHECK(live.ended() == 1);
  CHECK(live.late() == 0);
}

TEST_CASE("an answer of any kind ends a segment, and its result is delivered") {
  EndedStream live;
  live.send(10);
  live.end_segment(Answer::Kind::json);
  live.send(10);
  live.answer(1);
  live.end_segment(Answer::Kind::error);
  CHECK(live.said() == Said{"result 0 said", "result 2 said"});
  CHECK(live.rows() == Rows{{0, 0, 0, 10, 0, begins, 0},
                            {1, 10, 0, 0, 0, last, 0},
                            {2, 10, 0, 10, 0, segment, 0},
                            {3, 20, 0, 0, 0, last, 0}});
  CHECK(live.ended() == 2);
}

TEST_CASE("a segment with several rows in flight ends once, and later endpoints of it are late") {
  EndedStream live;
  live.send(30);
  live.take(3);
  live.end_segment();
  live.end_segment();
  live.end_segment();
  CHECK(live.rows().size() == 4);
  CHECK(live.rows().back() == Rows::value_type{3, 30, 0, 0, 0, last, 0});
  CHECK(live.ended() == 1);
  CHECK(live.late() == 2);
}

TEST_CASE("an endpoint of a LAST row, with frames or without, is late") {
  EndedStream live;
  live.send(15);
  live.stream.flush(std::nullopt, live.now);  // row 1 has five frames
  live.send(10);
  live.stream.flush(std::nullopt, live.now);  // row 3 is a marker row
  live.send(1);
  live.answer(1);
  live.end_segment();
  live.answer(1);
  live.end_segment();
  CHECK(live.rows().size() == 4);
  CHECK(live.ended() == 0);
  CHECK(live.late() == 2);
}

TEST_CASE("an endpoint is late once the client has ended the segment, whatever the way") {
  const auto late_after = [](auto end) {
    EndedStream live;
    live.send(13);
    end(live);
    const std::size_t rows = live.rows().size();
    live.end_segment();
    CHECK(live.rows().size() == rows);
    CHECK(live.ended() == 0);
    return live.late() == 1;
  };
  CHECK(late_after([](EndedStream& live) { live.stream.flush(7, live.now); }));
  CHECK(late_after([](EndedStream& live) { live.stream.reset(live.now); }));
  CHECK(late_after([](EndedStream& live) { live.stream.gap(5, live.now); }));
  CHECK(late_after([](EndedStream& live) { live.stream.end(live.now); }));
  CHECK(late_after([](EndedStream& live) {
    live.take(1);
    live.stream.fail(ErrorCode::idle, "silent", live.now);  // an abort
  }));
}

TEST_CASE("an endpoint takes effect before everything that waits for the chunker") {
  EndedStream live;
  live.send(80);  // as many rows as may be ready: what follows waits
  live.send(10);
  live.stream.flush(7, live.now);
  live.stream.end(live.now);
  live.take(1);  // of eight ready rows; the frames after them enter
  live.end_segment();
  live.take(8);
  live.answer(8);
  live.take_and_answer(3);
  const Rows all = live.rows();
  REQUIRE(all.size() == 12);
  CHECK(all[8] == Rows::value_type{8, 80, 0, 10, 0, 0, 0});
  CHECK(all[9] == Rows::value_type{9, 90, 0, 0, 0, last, 0});              // by the worker
  CHECK(all[10] == Rows::value_type{10, 90, 0, 0, 0, segment | last, 0});  // by the flush
  CHECK(all[11] == Rows::value_type{11, 90, 0, 0, 0, segment | ends, 0});
  CHECK(live.lane.rows[10].row.mark == 7);
  CHECK(live.ended() == 1);
}

TEST_CASE("an endpoint waits, as other events do, while a slow client holds the rows up") {
  EndedStream live;
  live.send(15);
  live.client.is_full = true;
  live.send(10);
  live.end_segment(Answer::Kind::json);
  CHECK(live.rows().size() == 1);
  live.client.is_full = false;
  live.write();
  CHECK(live.rows() == Rows{{0, 0, 0, 10, 0, begins, 0},
                            {1, 10, 0, 5, 0, last, 0},
                            {2, 15, 0, 10, 0, segment, 0}});
  CHECK(live.ended() == 1);
}

TEST_CASE("a late endpoint does not hide the one of the next segment while rows are held up") {
  EndedStream live;
  live.send(10);
  live.stream.flush(std::nullopt, live.now);  // row 1 is LAST
  live.send(10);
  live.client.is_full = true;
  live.end_segment();
  live.answer(1);
  live.end_segment();  // of row 2
  live.client.is_full = false;
  live.stream.tick(live.now);
  CHECK(live.rows().back() == Rows::value_type{3, 20, 0, 0, 0, last, 0});
  CHECK(live.ended() == 1);
  CHECK(live.late() == 1);
}

TEST_CASE("an endpoint that comes before the LAST row of an earlier flush is cut is late") {
  EndedStream live(by_worker(), {.size = 10, .right = 20});
  live.send(90);
  live.stream.flush(7, live.now);  // cuts two rows, the second one only when another is done
  CHECK(live.rows().size() == 8);
  live.end_segment();
  live.send(30);
  REQUIRE(live.rows().size() == 9);
  CHECK(live.rows()[8] == Rows::value_type{8, 80, 0, 10, 0, last, 0});
  CHECK(live.lane.rows[8].row.mark == 7);
  live.take_and_answer(8);
  CHECK(live.rows().back() == Rows::value_type{9, 90, 0, 10, 20, segment, 0});
  CHECK(live.ended() == 0);
  CHECK(live.late() == 1);
}

TEST_CASE("with on_endpoint = reset the next row carries RESET with the reason endpoint") {
  EndpointRule rule = by_worker();
  rule.on_endpoint = EndpointRule::On::reset;
  EndedStream live(rule);
  live.send(10);
  live.end_segment();
  live.send(10);
  CHECK(live.rows() == Rows{{0, 0, 0, 10, 0, begins, 0},
                            {1, 10, 0, 0, 0, last, 0},
                            {2, 10, 0, 10, 0, segment | flag::reset, 0}});
  CHECK(live.lane.rows[2].row.reason == ResetReason::endpoint);
  CHECK(live.stats.resets[ResetReason::endpoint].value() == 1);
}

TEST_CASE("in steady state endpoints of workers need no allocation") {
  EndedStream live;
  live.lane.rows.reserve(1000);
  const std::vector<std::byte> message(10 * sizeof(std::int16_t));
  const auto round = [&] {
    live.stream.frames(message, live.now);
    live.end_segment();
    live.answer(1);
  };
  for (int i = 0; i < 10; ++i) round();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 100; ++i) round();
  CHECK(test::allocations() == before);
  CHECK(live.ended() == 110);
}
