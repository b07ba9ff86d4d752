// SPDX-License-Identifier: Apache-2.0
// The messages of a resumable stream: their numbers, and how long they are kept.
#include <catch2/catch.hpp>

#include "base/message_room.h"
#include "tests/streams/resume/resumed_stream.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

using Numbers = std::vector<std::uint64_t>;

const std::string step(room_step - message_overhead, 'm');

}  // namespace

TEST_CASE_METHOD(ResumedStream, "all messages in the order of the stream are counted from 0") {
  send(10);
  link().stream->flush(7, live.now);
  link().stream->gap(0, live.now);
  message("a");
  answer(2);
  link().stream->end(live.now);
  answer(1);
  link().write(live.now);
  CHECK(link().numbers() == Numbers{0, 1, 2, 3, 4, 5, 6});
  CHECK(link().said() == Said{"rejected schema 0", "message 0 at 0 a", "result 0 said",
                              "result 1 said", "flushed 7", "result 2 said", "closed 10 1"});
}

TEST_CASE_METHOD(ResumedStream, "warnings, goaway and acknowledgements have no number") {
  link().send({'R' | 'I' << 8, 'F' | 'F' << 8, 0, 0, 'W' | 'A' << 8, 'V' | 'E' << 8, 1, 2, 3, 4},
              live.now);
  link().stream->reset(live.now);
  live.stream.goaway();
  answer(2, Answer::Kind::none);
  check_after(1s);
  CHECK(link().said() == Said{"warning values"});
  CHECK(link().client.goaways == 1);
  CHECK(link().client.points.size() == 1);
  CHECK(link().numbers().empty());
}

TEST_CASE("the numbers of a stream that is opened anew continue") {
  ResumedStream stream(tens, {.epoch = 4, .n = 12, .results = 5, .flushed = 5},
                       {.longest_segment = 1000, .start = {.seq = 5, .frames = 50, .begin = 50}});
  stream.send(10);
  stream.answer(1);
  CHECK(stream.link().said() == Said{"result 5 said"});
  CHECK(stream.link().numbers() == Numbers{12});
}

TEST_CASE("the totals of a stream that is opened anew are those of the whole stream") {
  ResumedStream stream(tens, {.epoch = 4, .n = 12},
                       {.longest_segment = 1000, .start = {.seq = 5, .frames = 50, .begin = 50}});
  stream.send(12);
  stream.link().stream->gap(7, stream.live.now);
  stream.link().stream->end(stream.live.now);
  stream.answer(3);
  stream.link().write(stream.live.now);
  CHECK(stream.link().said().back() == "closed 62 7");
}

TEST_CASE("each of two flushes with no frame between them is answered once") {
  for (const std::uint64_t flushed : {1u, 2u, 3u}) {
    ResumedStream stream(tens, {.epoch = 2, .results = 1, .flushed = flushed},
                         {.longest_segment = 1000, .start = {}});
    stream.send(10);
    stream.link().stream->flush(7, stream.live.now);  // ends row 1
    stream.link().stream->flush(8, stream.live.now);  // ends row 2
    stream.answer(3, Answer::Kind::none);
    const Said all{"flushed 7", "flushed 8"};
    CHECK(stream.link().said() == Said(all.begin() + static_cast<int>(flushed) - 1, all.end()));
  }
}

TEST_CASE_METHOD(ResumedStream, "a result has the place from which the stream can be continued") {
  send(25);
  link().stream->flush({}, live.now);
  send(10);
  answer(4);
  REQUIRE(link().client.numbers.size() == 4);
  CHECK(link().client.numbers[0].point == ResumePoint{});
  CHECK(link().client.numbers[2].point ==
        ResumePoint{.seq = 3, .frames = 25, .commands = 1, .begin = 25});
  CHECK(link().client.numbers[3].point == link().client.numbers[2].point);
}

TEST_CASE_METHOD(ResumedStream, "the place stays before a flush until the client has flushed") {
  send(10);
  answer(1);
  link().stream->flush(7, live.now);
  answer(1);
  CHECK(link().client.numbers[1].point == ResumePoint{});
  CHECK(live.stream.resume_point() ==
        ResumePoint{.seq = 2, .frames = 10, .commands = 1, .begin = 10});
}

TEST_CASE_METHOD(ResumedStream, "the place stays before the end until the client has closed") {
  send(10);
  link().stream->reset(live.now);
  link().stream->end(live.now);
  answer(3);
  CHECK(link().client.numbers[2].point ==
        ResumePoint{.seq = 2, .frames = 10, .commands = 1, .begin = 10});
}

TEST_CASE_METHOD(ResumedStream, "a new connection receives ready with the counts and the token") {
  send(25);
  link().stream->flush({}, live.now);
  CHECK(link().client.token == "token 1");
  CHECK(link().client.resumed == std::nullopt);
  lose();
  connect(1);
  CHECK(link().client.frames == 25);
  CHECK(link().client.commands == 1);
  CHECK(link().client.resumed == true);
  CHECK(link().client.token == "token 2");
}

TEST_CASE_METHOD(ResumedStream, "a new connection receives the messages from the client's number") {
  send(30);
  answer(2);
  lose();
  answer(1);
  connect(1, 1);
  CHECK(link().said() == Said{"result 1 said", "result 2 said"});
  CHECK(link().numbers() == Numbers{1, 2});
  lose();
  connect(2, 3);
  CHECK(link().said().empty());
  send(10);
  answer(1);
  CHECK(link().numbers() == Numbers{3});
}

TEST_CASE_METHOD(ResumedStream, "messages are kept until the client acknowledges them") {
  send(30);
  answer(3);
  link().stream->acknowledge(2, live.now);
  CHECK(kept->misfit({.n = 1}) == "n");
  lose();
  connect(1, 2);
  CHECK(link().said() == Said{"result 2 said"});
}

TEST_CASE_METHOD(ResumedStream, "an acknowledgement of messages that were not sent is an error") {
  send(10);
  answer(1);
  link().stream->acknowledge(1, live.now);
  CHECK(link().said() == Said{"result 0 said"});
  link().stream->acknowledge(2, live.now);
  CHECK(link().said() == Said{"error schema"});
}

TEST_CASE_METHOD(ResumedStream, "results that two connections have written are reported once") {
  send(10);
  message(step);
  message(step);
  link().stream->written(1, live.now);
  CHECK(live.lane.freed_room == std::vector{room_step});
  lose();
  connect(1);
  link().stream->written(1, live.now);
  CHECK(live.lane.freed_room.size() == 1);
  link().stream->written(1, live.now);
  CHECK(live.lane.freed_room == std::vector{room_step, room_step});
}

TEST_CASE_METHOD(ResumedStream, "messages that the client has are written") {
  send(10);
  message(step);
  message(step);
  lose();
  connect(1, 2);
  CHECK(live.lane.freed_room == std::vector{2 * room_step});
}

TEST_CASE_METHOD(ResumedStream, "without a connection room is free when a new one has written") {
  send(10);
  lose();
  message(step);
  CHECK(live.lane.freed_room.empty());
  connect(1);
  CHECK(live.lane.freed_room.empty());
  link().stream->written(1, live.now);
  CHECK(live.lane.freed_room == std::vector{room_step});
}

TEST_CASE_METHOD(ResumedStream, "the stream is closed when a connection has written its results") {
  send(10);
  link().stream->end(live.now);
  answer(2);
  lose();
  connect(1);
  CHECK(link().said() == Said{"result 0 said", "result 1 said"});
  link().stream->written(2, live.now);
  CHECK(link().said() == Said{"closed 10 1"});
}

TEST_CASE(
    "a stream that keeps too many bytes gives no row to the lane until they are acknowledged") {
  ResumedStream stream(tens, {.buffer = 1});
  stream.send(10);
  stream.answer(1);
  CHECK(stream.kept->full());
  stream.send(10);
  CHECK(stream.live.lane.rows.size() == 1);
  stream.link().stream->acknowledge(1, stream.live.now);
  CHECK_FALSE(stream.kept->full());
  CHECK(stream.live.lane.rows.size() == 2);
}

TEST_CASE("a stream that kept too many bytes continues when a new connection acknowledges them") {
  ResumedStream stream(tens, {.buffer = 1});
  stream.send(20);
  stream.answer(2);
  stream.send(10);
  stream.lose();
  stream.connect(1, 1);
  CHECK(stream.live.lane.rows.size() == 2);
  stream.lose();
  stream.connect(2, 2);
  CHECK(stream.live.lane.rows.size() == 3);
}

TEST_CASE("a stream opened anew does not repeat what its client has and is closed") {
  ResumedStream stream(tens, {.epoch = 2, .n = 3, .results = 2, .flushed = 2},
                       {.longest_segment = 1000, .start = {}});
  stream.send(20);
  stream.link().stream->flush(1, stream.live.now);
  stream.send(10);
  stream.link().stream->flush(2, stream.live.now);
  stream.link().stream->end(stream.live.now);
  stream.answer(6);
  CHECK(stream.link().said() == Said{"result 2 said", "flushed 1", "result 3 said", "result 4 said",
                                     "flushed 2", "result 5 said"});
  CHECK(stream.link().numbers() == Numbers{3, 4, 5, 6, 7, 8});
  stream.link().write(stream.live.now);
  CHECK(stream.link().said().empty());
  stream.check_after(0s);
  CHECK(stream.link().said() == Said{"closed 30 3"});
}

TEST_CASE_METHOD(ResumedStream, "evicting a stream drops its messages and the error is kept") {
  send(20);
  answer(2);
  CHECK(live.stream.reclaimable() > 2 * ClientShelf::overhead);
  live.stream.evict(live.now);
  lose();
  connect(1);
  CHECK(link().said() == Said{"error no_room"});
  CHECK(link().numbers() == Numbers{2});
}
