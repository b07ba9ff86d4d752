// SPDX-License-Identifier: Apache-2.0
// A stream whose client reads its results slowly, or does not read.
#include <catch2/catch.hpp>

#include "tests/streams/live_stream.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A stream whose client reads nothing.
struct SlowClient : LiveStream {
  explicit SlowClient(std::uint64_t limit = 1000) : LiveStream(tens, limit) { writes = false; }

  void fill() { client.is_full = true; }
  void read() {
    client.is_full = false;
    write();
  }
};

}  // namespace

TEST_CASE_METHOD(SlowClient,
                 "while the output to its client is full, a stream hands over no further rows") {
  send(20);
  fill();
  send(100);
  CHECK(lane.rows.size() == 2);
  take_and_answer(2);
  CHECK(lane.rows.size() == 2);
  read();
  CHECK(lane.rows.size() == 10);
}

TEST_CASE_METHOD(SlowClient, "rows that the lane already has are answered, and no result is lost") {
  send(80);
  fill();
  take(8);
  answer(8, Answer::Kind::text);
  CHECK(said().size() == 8);
  CHECK(stats.results.value() == 8);
  read();
  CHECK(stats.results.value() == 0);
  CHECK(stats.dropped[ResultLoss::slow_reader].value() == 0);
}

TEST_CASE_METHOD(SlowClient, "a stream is finished when every result was written, not before") {
  send(20);
  stream.end(now);
  answer(3, Answer::Kind::text);
  CHECK(said() == Said{"result 0 said", "result 1 said", "result 2 said"});
  CHECK_FALSE(stream.finished());
  stream.written(2, now);
  CHECK(said().empty());
  stream.written(1, now);
  CHECK(said() == Said{"closed 20 2"});
  CHECK(stream.finished());
  CHECK(stats.closed[StreamClosing::end].value() == 1);
}

TEST_CASE_METHOD(SlowClient, "a drain waits for a client that reads slowly") {
  fill();
  send(30);
  stream.drain(now);
  CHECK(lane.rows.empty());
  read();
  answer(4, Answer::Kind::text);
  CHECK(said().size() == 4);
  read();
  CHECK(said() == Said{"closed 30 3"});
  CHECK(stats.closed[StreamClosing::drain].value() == 1);
}

TEST_CASE_METHOD(SlowClient,
                 "results that a client did not read before it left are counted as dropped") {
  send(20);
  stream.end(now);
  answer(3, Answer::Kind::text);
  stream.disconnected(ConnectionEnd::lost, now);
  CHECK(stream.finished());
  CHECK(stats.dropped[ResultLoss::stream_closed].value() == 3);
  CHECK(stats.results.value() == 0);
  CHECK(stats.closed[StreamClosing::client_gone].value() == 1);
}

TEST_CASE_METHOD(SlowClient,
                 "results that a slow reader did not read are counted as dropped for that reason") {
  send(20);
  stream.end(now);
  answer(2, Answer::Kind::text);
  stream.fail(ErrorCode::slow_reader, "results are not read", now);
  answer(1, Answer::Kind::text);
  stream.disconnected(ConnectionEnd::lost, now);
  CHECK(said().back() == "error slow_reader");
  CHECK(stats.dropped[ResultLoss::slow_reader].value() == 3);
  CHECK(stats.closed[StreamClosing::error].value() == 1);
}

TEST_CASE("a stream that hands over no rows stays paused, and grants no credit") {
  SlowClient slow(100);
  slow.fill();
  slow.send(100);
  CHECK(slow.stream.paused());
  slow.stream.tick(slow.now);
  CHECK(slow.stream.paused());
  CHECK(slow.stream.credit() == 0);
  slow.read();
  slow.take_and_answer(8);
  slow.write();
  CHECK_FALSE(slow.stream.paused());
  CHECK(slow.stream.credit() > 0);
}

TEST_CASE_METHOD(
    SlowClient,
    "after its client has left, a stream hands over its rows although the output is full") {
  send(10);
  take(1);
  fill();
  send(20);
  stream.disconnected(ConnectionEnd::lost, now);
  CHECK(lane.rows.size() == 4);
  CHECK(lane.rows.back().row.is(flag::abort));
}
