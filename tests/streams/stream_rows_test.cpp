// SPDX-License-Identifier: Apache-2.0
// When frames become rows, and when they wait.
#include "streams/stream.h"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/streams/live_stream.h"

using namespace millrace;
using test::at;
using test::begins;
using test::ends;
using test::LiveStream;
using test::resumes;
using test::Rows;
using test::Said;
using test::tens;

TEST_CASE("frames become rows that contain them") {
  LiveStream live({.size = 4, .left = 2, .right = 1});
  live.send(3);
  CHECK(live.rows().empty());
  live.send(7);
  CHECK(live.rows() == Rows{{0, 0, 0, 4, 1, begins, 0}, {1, 4, 2, 4, 1, 0, 0}});
  CHECK(live.window(0) == std::vector<int>{1, 2, 3, 4, 5});
  CHECK(live.window(1) == std::vector<int>{3, 4, 5, 6, 7, 8, 9});
  CHECK(live.stream.position() == 10);
}

TEST_CASE("the name of a stream draws its sizes, unless the client requests one") {
  const ChunkRule rule{.spec = {.size = 4},
                       .sizes = {.by = SizeRule::By::random,
                                 .sizes = SizeList(std::vector<std::uint32_t>{4, 6, 9}),
                                 .seed = 5}};
  StreamSettings settings{.name = "call",
                          .type = {},
                          .format = format_of(SampleFormat::s16le, {}),
                          .chunk = rule,
                          .frames_limit = 1000};
  LiveStream drawn(settings);
  settings.requested_size = 6;
  LiveStream requested(settings);
  drawn.send(100);
  requested.send(100);
  REQUIRE(drawn.rows().size() == max_ready_rows);
  for (std::size_t i = 0; i < max_ready_rows; ++i) {
    CHECK(drawn.lane.rows[i].row.size == drawn_size(rule.sizes, "call", i));
    CHECK(requested.lane.rows[i].row.size == 6);
  }
}

TEST_CASE("a window across two blocks is complete") {
  LiveStream live({.size = 3000, .left = 1000}, 10000);
  live.send(9000);
  CHECK(live.rows().size() == 3);
  const std::vector<int> window = live.window(2);
  REQUIRE(window.size() == 4000);
  CHECK(!live.lane.rows[2].window[1].empty());
  for (int i = 0; i < 4000; ++i)
    if (window[static_cast<std::size_t>(i)] != 5001 + i) FAIL("frame " << i);
}

TEST_CASE("at most eight rows are ready and in no batch") {
  LiveStream live(tens);
  live.send(200);
  CHECK(live.rows().size() == 8);
  live.take(3);
  CHECK(live.rows().size() == 11);
  live.answer(3);
  CHECK(live.rows().size() == 11);
  live.answer(1);  // a row can be done without being in a batch
  CHECK(live.rows().size() == 12);
  live.take(100);
  CHECK(live.rows().size() == 20);
}

TEST_CASE(
    "a stream asks to be notified that a row was batched only if it may have to wait for it") {
  LiveStream live(tens);
  live.send(10);
  CHECK(live.lane.rows[0].notify_batched);  // an abort before it is in a batch drops the stream
  live.take_and_answer(1);
  live.send(80);
  REQUIRE(live.rows().size() == 9);
  for (std::size_t i = 1; i < 4; ++i) CHECK_FALSE(live.lane.rows[i].notify_batched);
  for (std::size_t i = 4; i < 9; ++i) CHECK(live.lane.rows[i].notify_batched);
  live.answer(8);
  live.pool.allow(0);
  live.send(10);
  CHECK(live.lane.rows[9].notify_batched);
}

TEST_CASE("also at the end of a stream, at most eight rows are ready") {
  LiveStream live({.size = 20, .step = 1});
  live.send(20);
  live.stream.end(live.now);
  CHECK(live.rows().size() == 8);
  live.take_and_answer(8);
  CHECK(live.rows().size() == 16);
  live.take_and_answer(8);
  CHECK(live.rows().size() == 20);
  CHECK(live.rows().back() == Rows::value_type{19, 19, 0, 1, 0, ends, 0});
  live.take_and_answer(4);
  CHECK(live.stream.finished());
}

TEST_CASE("a row has the instant when its last frame was read") {
  LiveStream live({.size = 10, .right = 2});
  live.now = at(1);
  live.send(11);
  live.now = at(2);
  live.send(5);
  live.now = at(3);
  live.send(10);
  REQUIRE(live.rows().size() == 2);
  CHECK(live.lane.rows[0].arrived == at(2));
  CHECK(live.lane.rows[0].ready == at(2));
  CHECK(live.lane.rows[1].arrived == at(3));
}

TEST_CASE("a row has the instant when the event that cut it was read") {
  LiveStream live(tens);
  live.now = at(1);
  live.send(5);
  live.now = at(2);
  live.stream.flush(std::nullopt, live.now);
  REQUIRE(live.rows().size() == 1);
  CHECK(live.lane.rows[0].arrived == at(2));
}

TEST_CASE("waiting events keep their order and their instants") {
  LiveStream live(tens);
  live.send(80);
  live.now = at(1);
  live.send(15);
  live.now = at(2);
  live.stream.flush(7, live.now);
  live.now = at(3);
  live.send(10);
  CHECK(live.rows().size() == 8);
  live.now = at(9);
  live.take(8);
  REQUIRE(live.rows().size() == 11);
  CHECK(live.rows()[8] == Rows::value_type{8, 80, 0, 10, 0, 0, 0});
  CHECK(live.rows()[9] == Rows::value_type{9, 90, 0, 5, 0, flag::last, 0});
  CHECK(live.rows()[10] == Rows::value_type{10, 95, 0, 10, 0, flag::segment, 0});
  CHECK(live.lane.rows[8].arrived == at(1));
  CHECK(live.lane.rows[9].arrived == at(2));
  CHECK(live.lane.rows[10].arrived == at(3));
  CHECK(live.lane.rows[10].ready == at(9));
}

TEST_CASE("frames are held until the rows that contain them are done") {
  LiveStream live({.size = 2048, .left = 2048}, 20000);
  live.send(4 * 2048);
  CHECK(live.stats.buffer.value() == 4 * 2048 * 2);
  live.take_and_answer(1);
  CHECK(live.stats.buffer.value() == 4 * 2048 * 2);  // the left context of the next
  live.take_and_answer(1);
  CHECK(live.stats.buffer.value() == 4 * 2048 * 2);
  live.take_and_answer(1);
  CHECK(live.stats.buffer.value() == 2 * 2048 * 2);  // a block has two rows
  live.take_and_answer(1);
  CHECK(live.stats.buffer.value() == 2 * 2048 * 2);
  live.stream.reset(live.now);
  live.take_and_answer(1);
  CHECK(live.stats.buffer.value() == 0);
}

TEST_CASE("a marker row releases no frame that a later row contains") {
  LiveStream live({.size = 10, .left = 30});
  live.send(30);
  live.stream.flush(std::nullopt, live.now);
  live.send(10);
  REQUIRE(live.rows().size() == 5);
  CHECK(live.rows()[3] == Rows::value_type{3, 30, 0, 0, 0, flag::last, 0});
  live.take_and_answer(3);
  CHECK(live.stats.buffer.value() > 0);
  CHECK(live.window(4).front() == 1);
}

TEST_CASE("a stream that holds no frames holds no block") {
  LiveStream live(tens);
  CHECK(live.stats.buffer.value() == 0);
  live.send(10);
  CHECK(live.stats.buffer.value() > 0);
  live.take_and_answer(1);
  CHECK(live.stats.buffer.value() == 0);
}

TEST_CASE("reading pauses at the limit and resumes at half of it") {
  LiveStream live(tens, 200);
  live.send(199);
  CHECK_FALSE(live.stream.paused());
  live.send(1);
  CHECK(live.stream.paused());
  live.take_and_answer(9);
  CHECK(live.stream.paused());
  CHECK(live.said().empty());
  live.take_and_answer(1);
  CHECK_FALSE(live.stream.paused());
  CHECK(live.said() == Said{"resume"});
  live.take_and_answer(5);
  CHECK(live.said().empty());
}

TEST_CASE("while blocks are scarce, reading pauses after one window until rows are done") {
  LiveStream live(tens, 200);
  live.pool.allow(0);
  auto of_others = live.pool.allocate();
  live.send(9);
  CHECK_FALSE(live.stream.paused());
  live.send(6);
  CHECK(live.stream.paused());
  live.take_and_answer(1);
  CHECK_FALSE(live.stream.paused());
  live.send(20);
  CHECK(live.stream.paused());
  (void)live.said();
  live.pool.allow(100'000);
  live.stream.tick(live.now);
  CHECK_FALSE(live.stream.paused());
  CHECK(live.said() == Said{"resume"});
  live.pool.give_back(std::move(of_others));
}

TEST_CASE("while blocks are scarce, rows at the worker do not pause the client") {
  LiveStream live(tens, 200);
  live.pool.allow(0);
  live.send(10);
  CHECK(live.stream.paused());
  live.take(1);
  CHECK_FALSE(live.stream.paused());
  live.send(9);
  CHECK_FALSE(live.stream.paused());
  live.send(1);
  CHECK(live.stream.paused());
  live.take(1);
  CHECK_FALSE(live.stream.paused());
}

TEST_CASE("reading pauses while too many events wait") {
  LiveStream live(tens);
  for (int i = 0; i < 8 + 63; ++i) live.stream.flush(i, live.now);
  CHECK_FALSE(live.stream.paused());
  live.stream.flush(std::nullopt, live.now);
  CHECK(live.stream.paused());
  live.take(8);
  live.take(8);
  live.take(8);
  CHECK(live.stream.paused());
  live.take(8);
  CHECK(live.said() == Said{"resume"});
}

TEST_CASE("a window as long as the limit does not stop a stream") {
  LiveStream live({.size = 10, .left = 90}, 100);
  for (int i = 0; i < 30; ++i) {
    live.send(10);
    CHECK(live.stream.paused() == (i >= 9));
    live.take_and_answer(1);
    CHECK_FALSE(live.stream.paused());
  }
}
