// SPDX-License-Identifier: Apache-2.0
// Messages of workers to the client of a stream.
#include <catch2/catch.hpp>

#include "base/message_room.h"
#include "tests/streams/live_stream.h"

using namespace millrace;
using namespace millrace::test;

namespace {

struct MessagedStream : LiveStream {
  MessagedStream() : LiveStream(tens) { writes = false; }
  void message(std::uint64_t seq, std::string text) {
    stream.message({.seq = seq, .message = {Answer::Kind::text, std::move(text)}}, now);
  }
};

// A message whose room is a step.
const std::string step(room_step - message_overhead, 'm');

}  // namespace

TEST_CASE_METHOD(MessagedStream,
                 "messages are numbered, and reach the client in order with the results") {
  send(20);
  message(0, "a");
  answer(1, Answer::Kind::text);
  message(1, "b");
  CHECK(said() == Said{"message 0 at 0 a", "result 0 said", "message 1 at 1 b"});
}

TEST_CASE_METHOD(MessagedStream, "a message is no result: it is not counted as one") {
  send(10);
  message(0, "a");
  CHECK(stats.results.value() == 0);
  answer(1, Answer::Kind::text);
  CHECK(stats.results.value() == 1);
  write();
  CHECK(stats.results.value() == 0);
}

TEST_CASE_METHOD(MessagedStream, "room is free when messages were written, in steps") {
  send(10);
  message(0, step);
  CHECK(lane.freed_room.empty());
  stream.written(1, now);
  CHECK(lane.freed_room == std::vector{room_step});
  message(0, "a");
  message(0, step);
  stream.written(1, now);
  CHECK(lane.freed_room.size() == 1);
  stream.written(1, now);
  CHECK(lane.freed_room.back() == room_step + 1 + message_overhead);
}

TEST_CASE_METHOD(MessagedStream, "the stream is closed when its messages were written") {
  send(10);
  stream.end(now);
  message(0, "a");
  answer(2, Answer::Kind::none);
  CHECK_FALSE(stream.finished());
  stream.written(1, now);
  CHECK(stream.finished());
}

TEST_CASE_METHOD(MessagedStream, "a stream whose client vanished frees the room of its messages") {
  send(10);
  message(0, step);
  stream.disconnected(ConnectionEnd::lost, now);
  CHECK(lane.freed_room == std::vector{room_step});
  message(0, step);
  CHECK(lane.freed_room.size() == 2);
  CHECK(said().size() == 1);
}

TEST_CASE_METHOD(MessagedStream, "a stream without memory for a message fails, and says so") {
  send(10);
  client.has_no_memory = true;
  message(0, "a");
  CHECK(said() == Said{"error internal"});
}
