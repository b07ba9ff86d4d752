// SPDX-License-Identifier: Apache-2.0
// Streams that wait for a connection.
#include <catch2/catch.hpp>

#include "tests/streams/resume/resumed_stream.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

TEST_CASE_METHOD(ResumedStream, "a waiting stream continues and ends after the window") {
  send(10);
  lose();
  answer(1);
  CHECK(kept->reclaimable() > 0);
  home->sweep(at(0) + window - 1ms);
  CHECK(is_there());
  home->sweep(at(0) + window);
  CHECK_FALSE(is_there());
  CHECK_FALSE(live.stream.connected());
  CHECK(live.rows().back()[5] == (flag::last | flag::end | flag::abort));
  CHECK(live.stats.detached.value() == 0);
  CHECK_FALSE(waiting.take_oldest("asr"));
}

TEST_CASE_METHOD(ResumedStream, "the window begins anew with each loss") {
  send(10);
  lose();
  live.now += 14s;
  connect(1);
  home->sweep(at(0) + window);
  CHECK(is_there());
  send(1);
  lose();
  home->sweep(at(0) + 14s + window - 1ms);
  CHECK(is_there());
  home->sweep(at(0) + 14s + window);
  CHECK_FALSE(is_there());
}

TEST_CASE_METHOD(ResumedStream, "a waiting stream is in the list of the process") {
  send(10);
  CHECK_FALSE(waiting.take_oldest("asr"));
  live.now += 5s;
  lose();
  const auto entry = waiting.take_oldest("asr");
  REQUIRE(entry);
  CHECK(entry->since == at(5000));
  CHECK(entry->key == key_of(1));
  CHECK(entry->thread == 3);
}

TEST_CASE_METHOD(ResumedStream, "a stream that has a connection again is not in the list") {
  send(10);
  lose();
  CHECK(home->claim(key_of(1)) == kept);
  connect(1);
  CHECK_FALSE(waiting.take_oldest("asr"));
  CHECK(home->claim(key_of(1)) == kept);
}

TEST_CASE_METHOD(ResumedStream, "a stream whose slot was taken is gone for its client") {
  send(10);
  lose();
  CHECK(waiting.take_oldest("asr"));
  CHECK(home->claim(key_of(1)) == nullptr);
  CHECK_FALSE(is_there());
  CHECK_FALSE(live.stream.connected());
}

TEST_CASE_METHOD(ResumedStream, "a waiting stream is ended when its slot is needed") {
  send(10);
  lose();
  const auto entry = waiting.take_oldest("asr");
  REQUIRE(entry);
  auto earlier = *entry;
  earlier.since -= 1s;
  home->end_waiting(earlier);  // it has had a connection since
  CHECK(is_there());
  home->end_waiting(*entry);
  CHECK_FALSE(is_there());
}

TEST_CASE_METHOD(ResumedStream, "a stream whose last row is done gives no slot to another one") {
  send(10);
  link().stream->end(live.now);
  const bool ends_before = GENERATE(true, false);
  if (ends_before) answer(2);
  lose();
  if (!ends_before) answer(2);
  home->sweep(live.now);
  CHECK_FALSE(waiting.take_oldest("asr"));
  CHECK(home->claim(key_of(1)) == kept);
}

TEST_CASE_METHOD(ResumedStream, "a stream whose last row is done gives its place to another one") {
  link().stream->end(live.now);
  answer(1, Answer::Kind::none);
  lose();
  const auto entry = waiting.take_oldest();
  REQUIRE(entry);
  const bool claims = GENERATE(true, false);
  if (claims) CHECK(home->claim(key_of(1)) == nullptr);
  home->end_waiting(*entry);
  CHECK_FALSE(is_there());
}

TEST_CASE_METHOD(ResumedStream, "an unknown stream is not found") {
  CHECK(home->find(key_of(1)) == kept);
  CHECK(home->find(key_of(2)) == nullptr);
  CHECK(home->claim(key_of(2)) == nullptr);
}

TEST_CASE_METHOD(ResumedStream, "the oldest waiting stream that is over is found") {
  send(10);
  CHECK(home->oldest_over() == nullptr);
  lose();
  CHECK(home->oldest_over() == nullptr);  // it is not over
  live.stream.fail(ErrorCode::internal, "", live.now);
  CHECK(home->oldest_over() == kept);
  CHECK(kept->kept_bytes() > 0);
  connect(1);
  CHECK(home->oldest_over() == nullptr);
}

TEST_CASE_METHOD(ResumedStream, "a service that stops ends the waiting streams") {
  send(10);
  lose();
  home->drain();
  CHECK_FALSE(is_there());
}

TEST_CASE_METHOD(ResumedStream, "while the service stops a stream ends with its connection") {
  send(10);
  home->drain();
  CHECK(is_there());
  lose();
  CHECK_FALSE(is_there());
}

TEST_CASE_METHOD(ResumedStream, "the stream ends with the streams of its thread") {
  send(10);
  home.reset();
  CHECK_FALSE(live.stream.connected());
  link().stream->frames(bytes_of<std::int16_t>({1}), live.now);
  CHECK(live.stream.received().frames == 10);
}
