// SPDX-License-Identifier: Apache-2.0
// Clients that acknowledge too little.
#include <catch2/catch.hpp>

#include "tests/streams/resume/resumed_stream.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

TEST_CASE("a client is not paused while its stream needs an acknowledgement") {
  ResumedStream stream(tens, {.buffer = 1});
  stream.send(1000);
  CHECK(stream.link().stream->paused());
  stream.answer(1);
  CHECK(stream.live.stream.paused());
  CHECK_FALSE(stream.link().stream->paused());
  CHECK(stream.link().said() == Said{"result 0 said", "resume"});
  stream.link().stream->acknowledge(1, stream.live.now);
  CHECK(stream.link().stream->paused());
}

TEST_CASE("a client is not read after many rejections that it has not acknowledged") {
  ResumedStream stream(tens, {.buffer = 1});
  StreamInput& input = *stream.link().stream;
  const auto reject = [&] { input.reject(ErrorCode::values, "", 0, stream.live.now); };
  const std::size_t most = (ResumableStream::excess - 1) / ClientShelf::overhead;
  for (std::size_t i = 0; i < most; ++i) reject();
  CHECK_FALSE(input.paused());
  CHECK_FALSE(input.overrun());
  reject();
  CHECK(input.paused());
  CHECK(input.overrun());
  input.acknowledge(most + 1, stream.live.now);
  CHECK_FALSE(input.paused());
  CHECK_FALSE(input.overrun());
}

TEST_CASE("a client that acknowledges nothing while the stream is full fails after the stall") {
  ResumedStream stream(tens, {.buffer = 1, .stall = 10s});
  stream.send(10);
  stream.answer(1);
  stream.check_after(0s);
  stream.check_after(10s);
  CHECK(stream.link().said() == Said{"result 0 said"});
  stream.check_after(1ms);
  CHECK(stream.link().said() == Said{"error slow_reader"});
}

TEST_CASE("an acknowledgement of something new begins the stall anew") {
  ResumedStream stream(tens, {.buffer = 1, .stall = 10s});
  stream.send(30);
  stream.answer(3);
  stream.check_after(0s);
  stream.check_after(9s);
  SECTION("in a message") { stream.link().stream->acknowledge(1, stream.live.now); }
  SECTION("in the request of a new connection") { stream.connect(1, 1); }
  (void)stream.link().said();
  stream.check_after(0s);
  stream.check_after(9s);
  stream.link().stream->acknowledge(1, stream.live.now);  // nothing new
  CHECK(stream.link().said().empty());
  stream.check_after(2s);
  CHECK(stream.link().said() == Said{"error slow_reader"});
}

TEST_CASE("a client that connects again and again without an acknowledgement fails") {
  ResumedStream stream(tens, {.buffer = 1, .stall = 10s});
  stream.send(10);
  stream.answer(1);
  const bool is_noticed = GENERATE(true, false);  // the loss of each connection, before the next
  const bool is_checked = GENERATE(true, false);
  stream.check_after(0s);
  std::uint32_t connections = 0;
  for (; connections < 5 && stream.link().said() == Said{"result 0 said"}; ++connections) {
    stream.live.now += 3s;
    if (is_checked) stream.check_after(0s);
    if (is_noticed) stream.lose();
    stream.connect(connections + 1);
  }
  CHECK(connections == 4);
  CHECK(stream.kept->misfit({.n = 2}).empty());  // the error is message 1
}

TEST_CASE("a client without a connection need not acknowledge") {
  ResumedStream stream(tens, {.buffer = 1, .stall = 10s});
  stream.send(10);
  stream.answer(1);
  stream.check_after(0s);
  stream.check_after(4s);
  for (std::uint32_t epoch = 1; epoch < 10; ++epoch) {
    stream.lose();
    stream.live.now += 14s;
    CHECK(stream.connect(epoch).said() == Said{"result 0 said"});
  }
  stream.check_after(6s);
  CHECK(stream.link().said().empty());
  stream.check_after(1ms);
  CHECK(stream.link().said() == Said{"error slow_reader"});
}

TEST_CASE("a client that acknowledges a message per connection loses no stream on a bad line") {
  ResumedStream stream(tens, {.buffer = 1, .stall = 10s});
  stream.send(100);
  const std::size_t rows = stream.live.lane.rows.size();
  stream.answer(rows);
  stream.check_after(0s);
  for (std::uint32_t n = 1; n < rows; ++n) {
    stream.check_after(9s);
    stream.lose();
    CHECK(stream.connect(n, n).said().size() == rows - n);
  }
}
