// SPDX-License-Identifier: Apache-2.0
// Messages of workers to the clients of their streams.
#include <catch2/catch.hpp>

#include "base/message_room.h"
#include "tests/workers/pipeline.h"

using namespace millrace;
using namespace millrace::test;
using Sent = Lanes::SendResult;

namespace {

struct Messages : Pipeline {
  Sent send(LaneId lane, StreamId stream, std::uint64_t newest, std::size_t bytes = 3) {
    Answer message{Answer::Kind::text, std::string(bytes, 'm')};
    return lanes.send(lane, stream, newest, message);
  }
  // Sends messages of the most bytes until there is no room, and returns their number.
  int fill(LaneId lane, StreamId stream) {
    int sent = 0;
    while (send(lane, stream, 0, longest_message) == Sent::accepted) ++sent;
    return sent;
  }
};

constexpr std::uint32_t longest_use = longest_message + message_overhead;

}  // namespace

TEST_CASE_METHOD(Messages, "a message returns to its stream with the newest row of its worker") {
  const LaneId lane = lanes.attach(2, now);
  const auto a = open(1);
  row(a);
  row(a);
  next(lane);
  done(lane);
  next(lane);
  CHECK(send(lane, a, 1) == Sent::accepted);
  CHECK(send(lane, a, 0) == Sent::accepted);
  const auto messages = events().messages;
  REQUIRE(messages.size() == 2);
  CHECK(messages[0].stream == a);
  CHECK(messages[0].seq == 1);
  CHECK(messages[0].message.data == "mmm");
  CHECK(messages[1].seq == 0);
}

TEST_CASE_METHOD(Messages, "a message about a row that the worker never had is wrong") {
  const LaneId lane = lanes.attach(2, now);
  const auto a = open(1);
  row(a);
  row(a);
  next(lane);
  CHECK(send(lane, a, 1) == Sent::wrong);
  CHECK(events().messages.empty());
}

TEST_CASE_METHOD(Messages, "a message is late without a row at the worker, and after the end") {
  const LaneId lane = lanes.attach(2, now), other = lanes.attach(2, now);
  const auto a = open(1);
  CHECK(send(lane, a, 0) == Sent::late);
  row(a, flag::last | flag::end);
  const LaneId has = next(lane) == "none" ? other : lane;
  if (has == other) next(other);
  CHECK(send(has == lane ? other : lane, a, 0) == Sent::late);
  CHECK(send(has, a, 0) == Sent::accepted);
  done(has);
  CHECK(send(has, a, 0) == Sent::late);
  CHECK(send(lane, StreamId{77}, 0) == Sent::late);
  CHECK(send(LaneId{77}, a, 0) == Sent::late);
}

TEST_CASE_METHOD(
    Messages, "a message beyond the room of its stream is wrong, and no other stream is touched") {
  const LaneId lane = lanes.attach(2, now);
  const auto a = open(1), b = open(2);
  row(a);
  row(b);
  next(lane);
  CHECK(fill(lane, a) == 1);
  CHECK(send(lane, a, 0, longest_message) == Sent::wrong);
  CHECK(send(lane, b, 0, longest_message) == Sent::accepted);
  CHECK(lanes.free_room(a, longest_use) == lane);
  CHECK(send(lane, a, 0, longest_message) == Sent::accepted);
}

TEST_CASE_METHOD(Messages,
                 "a worker that takes a stream over has the room that its messages left") {
  const LaneId first = lanes.attach(1, now);
  const auto a = open(1);
  row(a);
  next(first);
  CHECK(lanes.opened()[0].room == stream_room);
  CHECK(send(first, a, 0, longest_message) == Sent::accepted);
  lanes.lost(first, LossCause::worker, now);
  CHECK(lanes.free_room(a, 64) == std::nullopt);
  const LaneId second = lanes.attach(1, now);
  CHECK(next(second) == "1.0R");
  CHECK(lanes.opened()[0].room == stream_room - longest_use + 64);
  CHECK(lanes.free_room(a, longest_use - 64) == second);
  CHECK(send(second, a, 0, longest_message) == Sent::accepted);
}

TEST_CASE_METHOD(Messages, "while a stream moves, its old worker has the room") {
  const LaneId old = lanes.attach(1, now);
  const auto a = open(1);
  row(a, flag::last);
  next(old);
  const LaneId fresh = lanes.attach(1, now);
  lanes.bye(old, now);
  row(a);
  CHECK(send(old, a, 0) == Sent::accepted);
  CHECK(send(fresh, a, 0) == Sent::late);
  CHECK(lanes.free_room(a, 3 + message_overhead) == old);
  done(old);
  CHECK(next(fresh) == "1.1R");
  CHECK(send(old, a, 0) == Sent::late);
  CHECK(send(fresh, a, 1) == Sent::accepted);
}
