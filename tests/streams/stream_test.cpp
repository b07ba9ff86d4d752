// SPDX-License-Identifier: Apache-2.0
#include "streams/stream.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/streams/live_stream.h"

using namespace millrace;
using test::at;
using test::LiveStream;
using test::Rows;
using test::Said;

namespace {

// The numbers of the flags, as in rows of the protocol.
constexpr std::uint64_t begins = flag::start | flag::reset | flag::segment;
constexpr std::uint64_t ends = flag::last | flag::end;
constexpr std::uint64_t resumes = flag::reset | flag::segment | flag::gap;

constexpr Spec tens{.size = 10};

}  // namespace

TEST_CASE("frames become rows that show them") {
  LiveStream live({.size = 4, .left = 2, .right = 1});
  live.send(3);
  CHECK(live.rows().empty());
  live.send(7);
  CHECK(live.rows() == Rows{{0, 0, 0, 4, 1, begins, 0}, {1, 4, 2, 4, 1, 0, 0}});
  CHECK(live.window(0) == std::vector<int>{1, 2, 3, 4, 5});
  CHECK(live.window(1) == std::vector<int>{3, 4, 5, 6, 7, 8, 9});
  CHECK(live.stream.position() == 10);
}

TEST_CASE("a window is whole where it lies in two blocks") {
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
  live.stream.taken(3, live.now);
  CHECK(live.rows().size() == 11);
  live.answer(3);
  CHECK(live.rows().size() == 11);
  live.answer(1);  // a row may be done that was in no batch
  CHECK(live.rows().size() == 12);
  live.stream.taken(100, live.now);
  CHECK(live.rows().size() == 20);
}

TEST_CASE("the rows of an end come one by one") {
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

TEST_CASE("what waits keeps its order and its instants") {
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
  live.stream.taken(8, live.now);
  REQUIRE(live.rows().size() == 11);
  CHECK(live.rows()[8] == Rows::value_type{8, 80, 0, 10, 0, 0, 0});
  CHECK(live.rows()[9] == Rows::value_type{9, 90, 0, 5, 0, flag::last, 0});
  CHECK(live.rows()[10] == Rows::value_type{10, 95, 0, 10, 0, flag::segment, 0});
  CHECK(live.lane.rows[8].arrived == at(1));
  CHECK(live.lane.rows[9].arrived == at(2));
  CHECK(live.lane.rows[10].arrived == at(3));
  CHECK(live.lane.rows[10].ready == at(9));
}

TEST_CASE("frames are held until the rows that show them are done") {
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

TEST_CASE("a marker row lets no frame go that a later row shows") {
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

TEST_CASE("reading pauses while too many events wait") {
  LiveStream live(tens);
  for (int i = 0; i < 8 + 63; ++i) live.stream.flush(i, live.now);
  CHECK_FALSE(live.stream.paused());
  live.stream.flush(std::nullopt, live.now);
  CHECK(live.stream.paused());
  live.stream.taken(8, live.now);
  live.stream.taken(8, live.now);
  live.stream.taken(8, live.now);
  CHECK(live.stream.paused());
  live.stream.taken(8, live.now);
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

TEST_CASE("a client hears of its rows in order, and at last that all is done") {
  LiveStream live(tens);
  live.send(15);
  live.stream.flush(7, live.now);
  live.stream.end(live.now);
  live.answer(1, Answer::Kind::text);
  CHECK(live.said() == Said{"result 0 said"});
  live.answer(1, Answer::Kind::json);
  CHECK(live.said() == Said{"result 1 said", "flushed 7"});
  CHECK_FALSE(live.stream.finished());
  live.answer(1, Answer::Kind::error);
  CHECK(live.said() == Said{"result 2 said", "closed 15 2"});
  CHECK(live.stream.finished());
}

TEST_CASE("a result has the markers that the lane added") {
  LiveStream live(tens);
  live.send(20);
  live.answer(1);
  live.stream.done({.seq = 1, .answer = {Answer::Kind::text, ""}, .at = {}, .flags = flag::reset},
                   live.now);
  CHECK(live.client.flags == std::vector<std::uint8_t>{flag::reset});
}

TEST_CASE("a client hears nothing of a row that was not answered") {
  LiveStream live(tens);
  live.send(10);
  live.stream.flush(1, live.now);
  live.answer(2);
  CHECK(live.said() == Said{"flushed 1"});
}

TEST_CASE("a frame may straddle messages") {
  LiveStream live({.size = 2});
  const auto bytes = test::bytes_of<std::int16_t>({1, 2});
  live.stream.frames(Bytes(bytes).first(1), live.now);
  live.stream.frames(Bytes(), live.now);
  live.stream.frames(Bytes(bytes).subspan(1), live.now);
  CHECK(live.rows().size() == 1);
  CHECK(live.window(0) == std::vector<int>{1, 2});
}

TEST_CASE("half a frame at the end is rejected, and the end goes on") {
  LiveStream live(tens);
  live.send(4);
  live.stream.frames(test::bytes_of<std::uint8_t>({1}), live.now);
  live.stream.end(live.now);
  CHECK(live.said() == Said{"rejected values 0"});
  CHECK(live.rows() == Rows{{0, 0, 0, 4, 0, begins | ends, 0}});
  live.answer(1);
  CHECK(live.said() == Said{"closed 4 1"});
}

TEST_CASE("after the end everything is rejected but another end") {
  LiveStream live(tens);
  live.stream.end(live.now);
  live.stream.end(live.now);
  CHECK(live.said().empty());
  live.send(10);
  live.stream.flush(7, live.now);
  live.stream.gap(10, live.now);
  CHECK(live.said() == Said{"rejected unknown_stream 0", "rejected unknown_stream 0",
                            "rejected unknown_stream 0"});
  CHECK(live.rows() == Rows{{0, 0, 0, 0, 0, begins | ends, 0}});
  live.answer(1);
  CHECK(live.said() == Said{"closed 0 0"});
}

TEST_CASE("frames after a gap have their positions behind it") {
  LiveStream live({.size = 4, .left = 2});
  live.send(5);
  live.stream.gap(1000, live.now);
  live.send(4);
  CHECK(live.rows() == Rows{{0, 0, 0, 4, 0, begins, 0},
                            {1, 4, 2, 1, 0, flag::last, 0},
                            {2, 1005, 0, 4, 0, resumes, 1000}});
  CHECK(live.window(1) == std::vector<int>{3, 4, 5});
  CHECK(live.window(2) == std::vector<int>{6, 7, 8, 9});
  CHECK(live.lane.rows[2].row.reason == ResetReason::gap);
  CHECK(live.stats.lost[Loss::gap].value() == 1000);
  live.stream.end(live.now);
  live.answer(4);
  CHECK(live.said() == Said{"closed 9 3"});
}

TEST_CASE("a gap that waits moves only what comes behind it") {
  LiveStream live({.size = 4, .left = 2});
  live.send(4 * 8 + 6);
  live.stream.gap(100, live.now);
  live.send(4);
  live.take_and_answer(8);
  CHECK(live.rows().size() == 11);
  CHECK(live.window(8) == std::vector<int>{31, 32, 33, 34, 35, 36});
  CHECK(live.window(9) == std::vector<int>{35, 36, 37, 38});
  CHECK(live.rows()[10] == Rows::value_type{10, 138, 0, 4, 0, resumes, 100});
  CHECK(live.window(10) == std::vector<int>{39, 40, 41, 42});
}

TEST_CASE("a gap of no frames is rejected") {
  LiveStream live(tens);
  live.stream.gap(0, live.now);
  CHECK(live.said() == Said{"rejected schema 0"});
}

TEST_CASE("positions end at 2^53") {
  LiveStream live(tens);
  live.stream.gap((std::uint64_t{1} << 53) - 10, live.now);
  live.send(10);
  CHECK(live.said().empty());
  CHECK(live.rows().back()[1] == (std::uint64_t{1} << 53) - 10);
  live.send(1);
  CHECK(live.said() == Said{"error values"});
  CHECK(live.rows().back()[5] == (ends | flag::abort));

  LiveStream other(tens);
  other.stream.gap(std::numeric_limits<std::uint64_t>::max(), other.now);
  CHECK(other.said() == Said{"error values"});
  CHECK(other.stats.lost[Loss::gap].value() == 0);
}

TEST_CASE("a message with NaN is rejected, its frames are a gap") {
  StreamSettings settings{
      .id = {}, .format = SampleFormat::f32le, .spec = {.size = 2}, .frames_limit = 100};
  LiveStream live(settings);
  live.stream.frames(test::bytes_of({0.5f}), live.now);
  live.stream.frames(test::bytes_of({0.5f, std::numeric_limits<float>::quiet_NaN(), 0.5f}),
                     live.now);
  CHECK(live.said() == Said{"rejected values 3"});
  live.stream.frames(test::bytes_of({0.25f, 2.0f}), live.now);
  CHECK(live.rows() == Rows{{0, 0, 0, 1, 0, begins | flag::last, 0}, {1, 4, 0, 2, 0, resumes, 3}});
  CHECK(live.window(1) == std::vector<int>{8192, 32767});
  CHECK(live.stats.lost[Loss::rejected].value() == 3);
  CHECK(live.stats.frames.value() == 3);
  CHECK(live.stats.clamped.value() == 1);
}

TEST_CASE("the frames of a refused message are a gap") {
  LiveStream live(tens);
  live.send(3);
  live.stream.refuse(ErrorCode::too_long, "a message has at most 64 KiB", 40000, live.now);
  live.stream.refuse(ErrorCode::schema, "no such message", 0, live.now);
  CHECK(live.said() == Said{"rejected too_long 40000", "rejected schema 0"});
  CHECK(live.stream.position() == 40003);
  CHECK(live.rows() == Rows{{0, 0, 0, 3, 0, begins | flag::last, 0}});
}

TEST_CASE("features are chunked in vectors") {
  StreamSettings settings{
      .id = {},
      .type = {.element = Element::f32, .values = 3, .rate = 12.5, .features = true},
      .format = SampleFormat::f16le,
      .spec = {.size = 2},
      .frames_limit = 100};
  LiveStream live(settings);
  const auto bytes = test::bytes_of<std::uint16_t>({0x3c00, 0, 0, 0, 0x4000, 0xc000});
  live.stream.frames(Bytes(bytes).first(7), live.now);
  live.stream.frames(Bytes(bytes).subspan(7), live.now);
  REQUIRE(live.rows().size() == 1);
  CHECK(test::values_of<float>(live.lane.rows[0].window[0]) ==
        std::vector<float>{1, 0, 0, 0, 2, -2});
}

TEST_CASE("a lost connection aborts the stream and drops its results") {
  LiveStream live(tens);
  live.send(15);
  live.stream.lost(live.now);
  CHECK(live.rows() == Rows{{0, 0, 0, 10, 0, begins, 0}, {1, 15, 0, 0, 0, ends | flag::abort, 0}});
  live.answer(2, Answer::Kind::text);
  CHECK(live.said().empty());
  CHECK(live.stream.finished());
  CHECK(live.stats.dropped[ResultLoss::stream_closed].value() == 2);
  CHECK(live.stats.closed[StreamClosing::client_gone].value() == 1);
}

TEST_CASE("an abort comes after what waits before it") {
  LiveStream live(tens);
  live.send(105);
  live.stream.taken(1, live.now);
  live.stream.lost(live.now);
  CHECK(live.rows().size() == 9);
  live.take_and_answer(9);
  CHECK(live.rows().size() == 11);
  CHECK(live.rows()[10] == Rows::value_type{10, 105, 0, 0, 0, ends | flag::abort, 0});
}

TEST_CASE("an abort waits for nothing where no worker has begun") {
  LiveStream live(tens);
  live.send(105);
  live.stream.flush(7, live.now);
  live.stream.lost(live.now);
  REQUIRE(live.rows().size() == 9);
  CHECK(live.rows()[8] == Rows::value_type{8, 80, 0, 0, 0, ends | flag::abort, 0});
  live.stream.dropped(std::nullopt, live.now);
  CHECK(live.stream.finished());
  CHECK(live.stats.buffer.value() == 0);
}

TEST_CASE("a stream that had ended is not aborted, with or without a worker") {
  LiveStream live(tens);
  live.send(105);
  live.stream.end(live.now);
  live.stream.lost(live.now);
  CHECK(live.rows().size() == 8);
  live.take_and_answer(8);
  CHECK(live.rows().back() == Rows::value_type{10, 100, 0, 5, 0, ends, 0});
}

TEST_CASE("a connection closed with 1000 ends the stream, its results are dropped") {
  LiveStream live(tens);
  live.send(15);
  live.stream.left(live.now);
  CHECK(live.rows().back() == Rows::value_type{1, 10, 0, 5, 0, ends, 0});
  live.answer(2, Answer::Kind::text);
  CHECK(live.said().empty());
  CHECK(live.stream.finished());
  CHECK(live.stats.closed[StreamClosing::end].value() == 1);
}

TEST_CASE("a connection lost after the end changes no row") {
  LiveStream live(tens);
  live.send(15);
  live.stream.end(live.now);
  live.stream.lost(live.now);
  live.stream.lost(live.now);
  CHECK(live.rows().size() == 2);
  CHECK(live.rows().back()[5] == ends);
  live.answer(2, Answer::Kind::text);
  CHECK(live.said().empty());
  CHECK(live.stats.closed[StreamClosing::client_gone].value() == 1);
}

TEST_CASE("a drained stream gets its results, what still comes is ignored") {
  LiveStream live(tens);
  live.send(15);
  live.stream.drain(live.now);
  live.send(10);
  live.stream.end(live.now);
  CHECK(live.rows().back() == Rows::value_type{1, 10, 0, 5, 0, ends, 0});
  live.answer(2, Answer::Kind::text);
  CHECK(live.said() == Said{"result 0 said", "result 1 said", "closed 15 2"});
  CHECK(live.stats.closed[StreamClosing::drain].value() == 1);
}

TEST_CASE("a paused stream that is drained is read again") {
  LiveStream live(tens, 20);
  live.send(20);
  CHECK(live.stream.paused());
  live.stream.drain(live.now);
  CHECK(live.said() == Said{"resume"});
}

TEST_CASE("a stream that fails is told so, and aborted") {
  LiveStream live(tens);
  live.send(15);
  live.stream.fail(ErrorCode::idle, "nothing was heard for 30 s", live.now);
  live.stream.fail(ErrorCode::internal, "again", live.now);
  live.stream.lost(live.now);
  CHECK(live.said() == Said{"error idle"});
  CHECK(live.rows().back()[5] == (ends | flag::abort));
  live.answer(2, Answer::Kind::text);
  CHECK(live.said().empty());
  CHECK(live.stats.closed[StreamClosing::idle].value() == 1);
}

TEST_CASE("a stream that its lane dropped is finished at once") {
  LiveStream live(tens);
  live.send(200);
  live.stream.dropped(ErrorCode::no_worker, at(30000));
  CHECK(live.said() == Said{"error no_worker"});
  CHECK(live.stream.finished());
  CHECK(live.stats.buffer.value() == 0);
  CHECK(live.stats.closed[StreamClosing::no_worker].value() == 1);
  live.send(10);
  live.stream.lost(live.now);
  live.stream.dropped(std::nullopt, live.now);
  CHECK(live.said().empty());
  CHECK(live.rows().size() == 8);
  CHECK(live.stats.open.value() == 0);
}

TEST_CASE("a stream that died before a worker had it is dropped without a word") {
  LiveStream live(tens);
  live.send(5);
  live.stream.lost(live.now);
  live.stream.dropped(std::nullopt, live.now);
  CHECK(live.stream.finished());
  CHECK(live.said().empty());
  CHECK(live.stats.closed[StreamClosing::client_gone].value() == 1);
}

TEST_CASE("a stream counts what becomes of it") {
  LiveStream live({.size = 10, .first = 15});
  CHECK(live.stats.opened.value() == 1);
  CHECK(live.stats.open.value() == 1);
  live.send(15 + 10 + 3);
  live.stream.reset(live.now);
  live.stream.end(live.now);
  CHECK(live.stats.rows[RowKind::full].value() == 2);
  CHECK(live.stats.rows[RowKind::cut].value() == 1);
  CHECK(live.stats.rows[RowKind::marker].value() == 1);
  CHECK(live.stats.resets[ResetReason::start].value() == 1);
  CHECK(live.stats.resets[ResetReason::client].value() == 1);
  live.now = at(2000);
  live.answer(4);
  CHECK(live.stats.open.value() == 0);
  CHECK(live.stats.duration.sum() == 2'000'000'000);
}

TEST_CASE("a stream holds 5 s of signal unless said otherwise") {
  CHECK(default_frames_limit({.rate = 16000}) == 80000);
  CHECK(default_frames_limit({.rate = 12.5}) == 63);
}
