// SPDX-License-Identifier: Apache-2.0
// How a stream ends.
#include "streams/stream.h"

#include <catch2/catch.hpp>

#include "tests/streams/live_stream.h"

using namespace millrace;
using test::at;
using test::begins;
using test::ends;
using test::LiveStream;
using test::Rows;
using test::Said;
using test::tens;

TEST_CASE("a lost connection aborts the stream and drops its results") {
  LiveStream live(tens);
  live.send(15);
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  CHECK(live.rows() == Rows{{0, 0, 0, 10, 0, begins, 0}, {1, 15, 0, 0, 0, ends | flag::abort, 0}});
  live.answer(2, Answer::Kind::text);
  CHECK(live.said().empty());
  CHECK(live.stream.finished());
  CHECK(live.stats.dropped[ResultLoss::stream_closed].value() == 2);
  CHECK(live.stats.closed[StreamClosing::client_gone].value() == 1);
}

TEST_CASE("an abort comes after the events that wait before it") {
  LiveStream live(tens);
  live.send(105);
  live.take(1);
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  CHECK(live.rows().size() == 9);
  live.take_and_answer(9);
  CHECK(live.rows().size() == 11);
  CHECK(live.rows()[10] == Rows::value_type{10, 105, 0, 0, 0, ends | flag::abort, 0});
}

TEST_CASE("an evicted stream holds only the frames of its rows") {
  LiveStream live(tens);
  live.send(105);
  live.take(1);
  live.stream.evict(live.now);
  CHECK(live.said().back() == "error no_room");
  CHECK(live.stream.held_bytes() == 90 * 2);
  live.take_and_answer(9);
  CHECK(live.rows().size() == 10);
  CHECK(live.rows()[9] == Rows::value_type{9, 90, 0, 0, 0, ends | flag::abort, 0});
  live.take_and_answer(1);
  CHECK(live.stream.finished());
  CHECK(live.stats.buffer.value() == 0);
}

TEST_CASE("an ended stream keeps the frames of its client, even if it is evicted") {
  LiveStream live(tens);
  live.send(105);
  live.take(1);
  live.stream.end(live.now);
  live.stream.evict(live.now);
  live.take_and_answer(9);
  live.take_and_answer(2);
  CHECK(live.rows().back() == Rows::value_type{10, 100, 0, 5, 0, ends, 0});
  CHECK(live.stream.finished());
}

TEST_CASE("if no worker has had a row, an abort does not wait for earlier events") {
  LiveStream live(tens);
  live.send(105);
  live.stream.flush(7, live.now);
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  REQUIRE(live.rows().size() == 9);
  CHECK(live.rows()[8] == Rows::value_type{8, 80, 0, 0, 0, ends | flag::abort, 0});
  live.stream.dropped(std::nullopt, live.now);
  CHECK(live.stream.finished());
  CHECK(live.stats.buffer.value() == 0);
}

TEST_CASE("a lost connection does not abort an ended stream, with or without a worker") {
  LiveStream live(tens);
  live.send(105);
  live.stream.end(live.now);
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  CHECK(live.rows().size() == 8);
  live.take_and_answer(8);
  CHECK(live.rows().back() == Rows::value_type{10, 100, 0, 5, 0, ends, 0});
}

TEST_CASE("a connection closed with 1000 ends the stream, and its results are dropped") {
  LiveStream live(tens);
  live.send(15);
  live.stream.disconnected(ConnectionEnd::clean, live.now);
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
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  CHECK(live.rows().size() == 2);
  CHECK(live.rows().back()[5] == ends);
  live.answer(2, Answer::Kind::text);
  CHECK(live.said().empty());
  CHECK(live.stats.closed[StreamClosing::client_gone].value() == 1);
}

TEST_CASE("the host learns once that the client of a stream is gone, however it closed") {
  const bool clean = GENERATE(false, true), ended = GENERATE(false, true);
  LiveStream live(tens);
  live.send(15);
  if (ended) live.stream.end(live.now);
  live.stream.disconnected(clean ? ConnectionEnd::clean : ConnectionEnd::lost, live.now);
  live.stream.release(live.now);
  CHECK(live.lane.abandons == 1);
}

TEST_CASE("the host does not learn that the client of a finished stream is gone") {
  LiveStream live(tens);
  live.send(15);
  live.stream.end(live.now);
  live.answer(2);
  CHECK(live.stream.finished());
  live.stream.release(live.now);
  CHECK(live.lane.abandons == 0);
}

TEST_CASE("a drained stream receives its results, and further input is ignored") {
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

TEST_CASE("a stream that its client ended is closed as ended, even if it is drained later") {
  LiveStream live(tens);
  live.send(15);
  live.stream.end(live.now);
  live.stream.drain(live.now);
  live.answer(2);
  CHECK(live.said() == Said{"closed 15 2"});
  CHECK(live.stats.closed[StreamClosing::end].value() == 1);
}

TEST_CASE("a stream that its lane dropped is no longer paused") {
  LiveStream live(tens, 20);
  live.send(20);
  CHECK(live.stream.paused());
  live.stream.dropped(ErrorCode::no_worker, live.now);
  CHECK_FALSE(live.stream.paused());
}

TEST_CASE("a stream that fails receives the error, and is aborted") {
  LiveStream live(tens);
  live.send(15);
  live.stream.fail(ErrorCode::idle, "nothing was received for 30 s", live.now);
  live.stream.fail(ErrorCode::internal, "again", live.now);
  live.stream.disconnected(ConnectionEnd::lost, live.now);
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
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  live.stream.dropped(std::nullopt, live.now);
  CHECK(live.said().empty());
  CHECK(live.rows().size() == 8);
  CHECK(live.stats.open.value() == 0);
}

TEST_CASE("a stream over whose rows workers were lost ends with worker_failed") {
  LiveStream live(tens);
  live.send(20);
  live.answer(0, Answer::Kind::error);
  live.answer(1, Answer::Kind::error);
  live.said();
  live.stream.dropped(ErrorCode::worker_failed, live.now);
  CHECK(live.said() == Said{"error worker_failed"});
  CHECK(live.stream.finished());
  CHECK(live.stats.closed[StreamClosing::error].value() == 1);
}

TEST_CASE("a stream that is lost before a worker had a row is dropped without a message") {
  LiveStream live(tens);
  live.send(5);
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  live.stream.dropped(std::nullopt, live.now);
  CHECK(live.stream.finished());
  CHECK(live.said().empty());
  CHECK(live.stats.closed[StreamClosing::client_gone].value() == 1);
}

TEST_CASE("a stream counts its rows, its resets and its duration") {
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

TEST_CASE("if there is no memory for a result, its stream fails and is aborted") {
  test::LiveStream live(tens);
  live.send(20);
  live.client.has_no_memory = true;
  live.answer(1, Answer::Kind::text);
  CHECK(live.said() == Said{"error internal"});
  live.client.has_no_memory = false;
  live.answer(2, Answer::Kind::text);  // the second row, and ABORT
  CHECK(live.said().empty());
  CHECK(live.stream.finished());
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  CHECK(live.stats.results.value() == 0);
}
