// SPDX-License-Identifier: Apache-2.0
// The connections of a resumable stream.
#include <catch2/catch.hpp>

#include "tests/streams/resume/resumed_stream.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;
using Epoch = ResumableStream::Epoch;

TEST_CASE_METHOD(ResumedStream, "a connection that still stands receives a conflict") {
  send(10);
  Link& old = link();
  connect(1);
  CHECK(old.said() == Said{"error conflict"});
  CHECK(old.numbers().empty());
  answer(1);
  CHECK(old.said().empty());
  CHECK(link().said() == Said{"result 0 said"});
}

TEST_CASE_METHOD(ResumedStream, "the calls of an old connection have no effect") {
  send(10);
  StreamInput& old = *link().stream;
  connect(1);
  CHECK(old.outlives_connection() == false);
  old.frames(bytes_of<std::int16_t>({1, 2, 3}), live.now);
  old.flush(1, live.now);
  old.reset(live.now);
  old.gap(5, live.now);
  old.post("1", live.now);
  old.set("{}", live.now);
  old.acknowledge(9, live.now);
  old.end(live.now);
  old.reject(ErrorCode::schema, "", 5, live.now);
  old.fail(ErrorCode::schema, "", live.now);
  old.drain(live.now);
  old.tick(live.now);
  old.check(live.now + 1h);
  old.written(1, live.now);
  CHECK(old.credit() == 0);
  CHECK_FALSE(old.paused());
  CHECK_FALSE(old.overrun());
  CHECK(old.piece(bytes_of<std::int16_t>({1, 2})) == 4);
  old.disconnected(ConnectionEnd::clean, live.now);
  links.front().stream.reset();
  CHECK(live.stream.received().frames == 10);
  CHECK(live.stream.received().commands == 0);
  CHECK(live.rows().size() == 1);
  CHECK(link().said().empty());
  CHECK(is_there());
}

TEST_CASE_METHOD(ResumedStream, "half a frame of a lost connection is forgotten") {
  send(9);
  link().stream->frames(bytes_of<std::uint8_t>({99}), live.now);
  lose();
  connect(1);
  CHECK(link().client.frames == 9);
  send(1);
  CHECK(live.window(0) == std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

TEST_CASE_METHOD(ResumedStream, "half a frame of a connection that still stands is forgotten") {
  link().stream->frames(bytes_of<std::uint8_t>({99}), live.now);
  connect(1);
  send(10);
  CHECK(live.window(0).front() == 1);
}

TEST_CASE_METHOD(ResumedStream, "a stream that received nothing ends with its connection") {
  lose();
  CHECK_FALSE(is_there());
  CHECK_FALSE(live.stream.connected());
}

TEST_CASE_METHOD(ResumedStream, "a stream whose client closes cleanly ends") {
  send(15);
  lose(ConnectionEnd::clean);
  CHECK_FALSE(is_there());
  CHECK(live.rows().back()[5] == (flag::last | flag::end));
}

TEST_CASE("a stream waits for its client after any other end of its connection") {
  for (const ConnectionEnd how :
       {ConnectionEnd::moved, ConnectionEnd::closed, ConnectionEnd::lost}) {
    ResumedStream stream;
    stream.send(15);
    stream.lose(how);
    CHECK(stream.is_there());
    CHECK(stream.kept->detached_since() == at(0));
    CHECK(stream.live.stream.connected());
    CHECK(stream.live.stats.detached.value() == 1);
    stream.connect(1);
    CHECK_FALSE(stream.kept->detached_since());
    CHECK(stream.live.stats.detached.value() == 0);
  }
}

TEST_CASE_METHOD(ResumedStream, "after goaway a client that moves takes its stream with it") {
  send(15);
  live.stream.goaway();
  lose(ConnectionEnd::moved);
  CHECK_FALSE(is_there());
}

TEST_CASE_METHOD(ResumedStream, "after goaway a stream still survives a lost connection") {
  send(15);
  live.stream.goaway();
  lose();
  CHECK(is_there());
  connect(1);
  CHECK(link().client.goaways == 1);
}

TEST_CASE_METHOD(ResumedStream, "a goaway reaches a client that was away") {
  send(15);
  lose();
  live.stream.goaway();
  connect(1);
  CHECK(link().client.goaways == 1);
}

TEST_CASE_METHOD(ResumedStream, "an error is kept for a client that did not receive it") {
  send(10);
  lose();
  live.stream.dropped(ErrorCode::no_worker, live.now);
  connect(1);
  CHECK(link().said() == Said{"error no_worker"});
  CHECK(link().client.resumed == true);
}

TEST_CASE_METHOD(ResumedStream, "closed is kept for a client that did not receive it") {
  link().stream->end(live.now);
  answer(1, Answer::Kind::none);
  CHECK(live.stream.finished());
  lose();
  connect(1);
  CHECK(link().said() == Said{"closed 0 0"});
}

TEST_CASE_METHOD(ResumedStream, "an error is not kept if its client has acknowledged it") {
  send(10);
  link().stream->fail(ErrorCode::schema, "", live.now);
  link().stream->acknowledge(1, live.now);
  lose();
  CHECK_FALSE(is_there());
}

TEST_CASE("an error is not kept after the closing handshake") {
  for (const ConnectionEnd how :
       {ConnectionEnd::closed, ConnectionEnd::moved, ConnectionEnd::clean}) {
    ResumedStream stream;
    stream.send(10);
    stream.link().stream->fail(ErrorCode::schema, "", stream.live.now);
    stream.lose(how);
    CHECK_FALSE(stream.is_there());
  }
}

TEST_CASE_METHOD(ResumedStream, "releasing the handle of a connection counts as its loss") {
  send(10);
  link().stream.reset();
  CHECK(is_there());
  CHECK(kept->detached_since());
}

TEST_CASE_METHOD(ResumedStream, "a token can be used until something arrives over its connection") {
  CHECK(kept->check(0, 0) == Epoch::used);
  CHECK(kept->check(1, 0) == Epoch::continues);
  CHECK(kept->check(2, 0) == Epoch::newer);
  send(1);
  CHECK(kept->check(1, 0) == Epoch::continues);
  lose();
  connect(1);
  CHECK(link().client.token == "token 2");
  CHECK(kept->check(1, 0) == Epoch::continues);
  CHECK(kept->check(2, 0) == Epoch::continues);
  CHECK(kept->check(3, 0) == Epoch::newer);
  SECTION("frames") { send(1); }
  SECTION("a command") { link().stream->flush({}, live.now); }
  SECTION("an acknowledgement") { link().stream->acknowledge(0, live.now); }
  SECTION("the end") { link().stream->end(live.now); }
  CHECK(kept->check(1, 0) == Epoch::used);
  CHECK(kept->check(2, 0) == Epoch::continues);
}

TEST_CASE_METHOD(ResumedStream, "a token can be shown twice if its ready was lost") {
  send(1);
  lose();
  connect(1);
  lose();
  connect(1);
  CHECK(link().client.token == "token 2");
  CHECK(kept->check(1, 0) == Epoch::continues);
  send(1);
  CHECK(kept->check(1, 0) == Epoch::used);
}

TEST_CASE("the token with which a stream was opened anew can be used until something arrives") {
  ResumedStream stream(tens, {.epoch = 4}, {.longest_segment = 1000, .start = {}});
  CHECK(stream.kept->check(3, 0) == Epoch::used);
  CHECK(stream.kept->check(4, 0) == Epoch::continues);
  CHECK(stream.kept->check(5, 0) == Epoch::continues);
  CHECK(stream.kept->check(6, 0) == Epoch::newer);
  stream.send(1);
  CHECK(stream.kept->check(4, 0) == Epoch::used);
}

TEST_CASE("a token of the right epoch that was given elsewhere is newer") {
  ResumedStream stream(tens, {.epoch = 4, .opening = 7, .opened_by = 9},
                       {.longest_segment = 1000, .start = {}});
  CHECK(stream.kept->check(4, 9) == Epoch::continues);
  CHECK(stream.kept->check(4, 7) == Epoch::newer);
  CHECK(stream.kept->check(5, 7) == Epoch::continues);
  CHECK(stream.kept->check(5, 9) == Epoch::newer);
  CHECK(stream.kept->check(3, 1) == Epoch::used);
  stream.send(1);
  CHECK(stream.kept->check(4, 1) == Epoch::used);
  CHECK(stream.kept->check(5, 1) == Epoch::newer);
}

TEST_CASE_METHOD(ResumedStream, "the parameter that does not fit is named") {
  send(15);
  link().stream->flush({}, live.now);
  answer(2);
  link().stream->acknowledge(1, live.now);
  const Resumption newest{.token = {},
                          .n = 2,
                          .point = {.seq = 2, .frames = 15, .commands = 1, .begin = 15},
                          .results = 2,
                          .flushed = 2,
                          .set = {}};
  CHECK(kept->misfit(newest).empty());
  CHECK(kept->misfit({.n = 1}).empty());
  const auto misfit = [&](auto change) {
    Resumption other = newest;
    change(other);
    return kept->misfit(other);
  };
  CHECK(misfit([](Resumption& one) { one.n = 0; }) == "n");
  CHECK(misfit([](Resumption& one) { one.n = 3; }) == "n");
  CHECK(misfit([](Resumption& one) { one.point.seq = 3; }) == "seq");
  CHECK(misfit([](Resumption& one) { one.point.frames = 16; }) == "from");
  CHECK(misfit([](Resumption& one) { one.point.commands = 2; }) == "commands");
  CHECK(misfit([](Resumption& one) { one.point.begin = 16; }) == "begin");
  CHECK(misfit([](Resumption& one) { one.results = 3; }) == "have");
  CHECK(misfit([](Resumption& one) { one.flushed = 3; }) == "flushed");
}

TEST_CASE("the numbers of a client fit the stream that was opened anew with them") {
  const Resumption numbers{.token = {},
                           .n = 9,
                           .point = {.seq = 3, .frames = 30, .commands = 1, .begin = 61, .skip = 1},
                           .results = 7,
                           .flushed = 6,
                           .set = {}};
  StreamSettings settings = settings_of(tens);
  settings.format.rate = 8000;
  ResumedStream stream(settings, {.epoch = 2, .n = 9, .results = 7, .flushed = 6},
                       {.longest_segment = 1000, .start = numbers.point});
  CHECK(stream.kept->misfit(numbers).empty());
  Resumption other = numbers;
  other.results = 8;
  CHECK(stream.kept->misfit(other) == "have");
  other = numbers;
  other.flushed = 7;
  CHECK(stream.kept->misfit(other) == "flushed");
  other = numbers;
  other.point.begin = 62;
  CHECK(stream.kept->misfit(other) == "begin");
}

TEST_CASE("a client whose results are repeated receives the place at most once a second") {
  ResumedStream stream(tens, {.results = 100}, {.longest_segment = 0});
  stream.send(100);
  for (int i = 0; i < 8; ++i) {
    stream.answer(1);
    stream.check_after(250ms);
  }
  CHECK(stream.link().client.points.size() == 2);
}

TEST_CASE_METHOD(ResumedStream, "the client receives the place at most once a second") {
  send(10);
  answer(1, Answer::Kind::none);
  link().stream->flush({}, live.now);
  answer(1, Answer::Kind::none);
  check_after(1s);
  const ResumePoint place{.seq = 2, .frames = 10, .commands = 1, .begin = 10};
  CHECK(link().client.points == std::vector{place});
  link().stream->reset(live.now);
  answer(1, Answer::Kind::none);
  check_after(999ms);
  CHECK(link().client.points.size() == 1);
  check_after(1ms);
  CHECK(link().client.points.size() == 2);
  check_after(1s);
  CHECK(link().client.points.size() == 2);
}

TEST_CASE_METHOD(ResumedStream,
                 "a new connection receives a place that the old one may have lost") {
  send(10);
  link().stream->reset(live.now);
  answer(2, Answer::Kind::none);
  check_after(1s);
  CHECK(link().client.points.size() == 1);
  lose();
  connect(1);
  check_after(0s);
  CHECK(link().client.points.size() == 1);
}
