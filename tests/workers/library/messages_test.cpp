// SPDX-License-Identifier: Apache-2.0
// Messages of a worker to the clients of its streams.
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <string>

#include "base/message_room.h"
#include "tests/workers/library/fake_service.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

Answer text(std::size_t bytes) { return {Answer::Kind::text, std::string(bytes, 'm')}; }

// A worker whose service hands batches over, each with one row.
struct Sending {
  FakeService service;
  Worker worker = service.attach({.credits = 4});
  std::uint64_t id = 0;

  // Stream 1 in slot 0: its first row has the number 0, and opens it with this room.
  void hand_over(std::uint64_t seq, std::uint8_t flags = 0, std::uint32_t room = stream_room,
                 std::uint64_t stream = 1) {
    HandedBatch batch;
    batch.id = BatchId{++id};
    batch.slab = static_cast<std::uint32_t>(id % 3);
    batch.rows = 1;
    batch.width = 3;
    batch.framed = {{.stream = StreamId{stream}, .seq = seq, .size = 3, .flags = flags}};
    if (seq == 0) batch.opened = {{StreamId{stream}, 0, "s", "", room}};
    service.send(batch);
  }
  WorkerBatch take() { return *worker.next_until(Clock::now() + patience); }
  bool send(std::size_t bytes, Time deadline = Time::min()) {
    return worker.send(StreamId{1}, text(bytes), deadline);
  }
};

}  // namespace

TEST_CASE_METHOD(Sending, "a message has the number of the newest row that the worker has taken") {
  hand_over(0);
  const auto first = take();
  CHECK(send(2));
  CHECK(service.receive<Send>() == Send{StreamId{1}, 0, text(2)});
  hand_over(1);
  const auto second = take();
  CHECK(send(2));
  CHECK(service.receive<Send>().seq == 1);
}

TEST_CASE_METHOD(Sending,
                 "a stream without a slot of the worker is gone: before its first row, after its "
                 "last one, after another stream got its slot") {
  CHECK_THROWS_AS(send(2), StreamGone);
  hand_over(0);
  CHECK_THROWS_AS(send(2), StreamGone);
  auto first = take();
  CHECK(send(2));
  worker.done(first);
  CHECK(send(2));
  hand_over(1, 48);
  auto last = take();
  CHECK(send(2));
  worker.done(last);
  CHECK_THROWS_WITH(send(2),
                    "stream 1 has no slot of this worker: it has ended, moved to another "
                    "worker, or was never here");
  hand_over(0, 0, stream_room, 2);
  const auto next = take();
  hand_over(0);
  const auto moved_back = take();
  CHECK(send(2));
  CHECK_THROWS_AS(worker.send(StreamId{2}, text(2)), StreamGone);
}

TEST_CASE_METHOD(Sending, "without room a message is not sent, and room that comes back is used") {
  hand_over(0);
  const auto batch = take();
  CHECK(send(longest_message));
  CHECK_FALSE(send(longest_message));
  CHECK(send(100));
  service.send(Room{StreamId{1}, 3 * room_step});
  CHECK(send(longest_message, Clock::now() + patience));
  CHECK_FALSE(send(longest_message));
}

TEST_CASE_METHOD(Sending, "a thread that waits for room does not keep another from its batch") {
  hand_over(0);
  const auto batch = take();
  CHECK(send(longest_message));
  auto waits =
      std::async(std::launch::async, [&] { return send(longest_message, Clock::now() + 1h); });
  hand_over(1);
  CHECK(take().framed()[0].seq == 1);
  service.send(Room{StreamId{1}, room_step});
  service.send(Room{StreamId{1}, stream_room - room_step});
  CHECK(waits.get());
}

TEST_CASE_METHOD(
    Sending,
    "a stream that was taken over has the room that its service states, also before it is taken") {
  hand_over(0, 0, 1000);
  service.send(Room{StreamId{1}, 36});
  const auto batch = take();
  CHECK_FALSE(send(1000));
  CHECK(send(1036 - message_overhead));
  CHECK_FALSE(send(0));
}

TEST_CASE_METHOD(Sending, "an interrupted worker does not wait for room") {
  hand_over(0);
  const auto batch = take();
  CHECK(send(longest_message));
  worker.interrupt();
  CHECK_FALSE(send(longest_message, Clock::now() + 1h));
  CHECK_FALSE(worker.next_until(Clock::now() + patience));
}

TEST_CASE_METHOD(Sending,
                 "a stream that is not at this worker any more is gone once the service says so") {
  hand_over(0);
  const auto batch = take();
  CHECK(send(longest_message));
  service.send(Room{StreamId{1}, 0});
  CHECK_THROWS_AS(send(longest_message, Clock::now() + patience), StreamGone);
}

TEST_CASE_METHOD(Sending, "the answer to a pending row is sent once, after its batch") {
  hand_over(0);
  auto batch = take();
  CHECK_THROWS_AS(worker.answer(StreamId{1}, 0, text(2)), std::invalid_argument);
  const std::vector<Answer> pending{{Answer::Kind::pending}};
  worker.done(batch, pending);
  worker.answer(StreamId{1}, 0, text(2));
  CHECK(service.receive<Done>().answers == pending);
  CHECK(service.receive<LateAnswer>() == LateAnswer{StreamId{1}, 0, text(2)});
  CHECK_THROWS_WITH(worker.answer(StreamId{1}, 0, text(2)),
                    "row 0 of stream 1 is not pending: its answer was sent, or was not `pending`, "
                    "or its batch is not given back");
  CHECK_THROWS_AS(worker.answer(StreamId{2}, 0, text(2)), StreamGone);
}

TEST_CASE_METHOD(Sending, "a stream whose END row is pending is there until its answer is sent") {
  hand_over(0, 48);
  auto batch = take();
  worker.done(batch, std::vector<Answer>{{Answer::Kind::pending}});
  CHECK(send(2));
  CHECK_THROWS_AS(worker.answer(StreamId{1}, 0, {Answer::Kind::pending}), std::invalid_argument);
  CHECK_THROWS_AS(worker.answer(StreamId{1}, 0, {Answer::Kind::json, "{"}), std::invalid_argument);
  worker.answer(StreamId{1}, 0, {});
  CHECK_THROWS_AS(send(2), StreamGone);
}

TEST_CASE_METHOD(Sending, "a message that cannot be one is refused before it is sent") {
  hand_over(0);
  const auto batch = take();
  CHECK_THROWS_WITH(send(longest_message + 1), "a message has at most 49088 bytes, not 49089");
  CHECK_THROWS_AS(worker.send(StreamId{1}, {Answer::Kind::json, "{"}), std::invalid_argument);
  CHECK_THROWS_AS(worker.send(StreamId{1}, {Answer::Kind::text, "\xff"}), std::invalid_argument);
  CHECK_THROWS_AS(worker.send(StreamId{1}, {Answer::Kind::error, "no"}), std::invalid_argument);
  CHECK_THROWS_AS(worker.send(StreamId{1}, {}), std::invalid_argument);
}

TEST_CASE_METHOD(Sending, "after the service is lost, no stream is there") {
  hand_over(0);
  const auto batch = take();
  service.hang_up();
  CHECK_THROWS_AS(worker.next_until(Clock::now() + patience), WorkerError);
  CHECK_THROWS_AS(send(2), StreamGone);
}
