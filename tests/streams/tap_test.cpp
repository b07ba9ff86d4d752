// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/streams/live_stream.h"
#include "tests/support/allocations.h"
#include "tests/support/tapped.h"

using namespace millrace;
using Kind = Event::Kind;
using Closed = test::Tapped::Closed;

namespace {

struct TappedStream {
  explicit TappedStream(const Spec& spec = test::tens, std::uint64_t limit = 1000)
      : live({.id = StreamId{5},
              .type = {},
              .format = format_of(SampleFormat::s16le, {}),
              .chunk = {.spec = spec},
              .frames_limit = limit,
              .opened = test::at(0)},
             100, tapped.tap()) {}

  // "open 0@0", "frames 10@3": kind, count, and the instant in milliseconds.
  std::vector<std::string> events() const {
    constexpr const char* names[] = {"open",  "frames", "size", "flush",
                                     "reset", "gap",    "end",  "abort"};
    std::vector<std::string> all;
    for (const auto& [event, arrived] : tapped.events)
      all.push_back(std::string(names[static_cast<int>(event.kind)]) + " " +
                    std::to_string(event.count) + "@" +
                    std::to_string(to_wire(arrived) / 1'000'000));
    return all;
  }

  test::Tapped tapped;
  test::LiveStream live;
};

// Discards what it sees, and so does not allocate.
class IdleTap final : public StreamTap {
 public:
  void event(const Event&, Time, const std::array<Bytes, 2>& frames) override {
    bytes += frames[0].size() + frames[1].size();
  }
  void row(const Row&) override {}
  void answered(std::uint64_t, BatchId, const Answer&) override {}
  void message(std::uint64_t, std::uint64_t, const Answer&) override {}
  void closed(StreamClosing, bool) override {}

  std::size_t bytes = 0;
};

}  // namespace

TEST_CASE_METHOD(TappedStream, "a tap sees every event with the instant when it was read") {
  live.now = test::at(3);
  live.send(12);
  live.now = test::at(5);
  live.stream.flush(7, live.now);
  live.stream.gap(4, live.now);
  live.now = test::at(6);
  live.stream.end(live.now);
  CHECK(events() == std::vector<std::string>{"open 0@0", "frames 10@3", "frames 2@3", "flush 0@5",
                                             "gap 4@5", "end 0@6"});
  CHECK(tapped.events[3].first.mark == 7u);
  CHECK(tapped.rows == tapped.cut_again(test::tens));
}

TEST_CASE_METHOD(TappedStream, "a tap sees the values of frames and no frames that wait") {
  for (int i = 0; i < 60; ++i) live.send(10);
  CHECK(tapped.frames.size() == max_ready_rows * 10 * sizeof(std::int16_t));
  live.take_and_answer(10);
  const auto values = test::values_of<std::int16_t>(tapped.frames);
  CHECK(values.size() == (max_ready_rows + 10) * 10);
  for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == static_cast<int>(i) + 1);
}

TEST_CASE_METHOD(TappedStream, "a tap sees each answer, even if the client is gone") {
  live.send(20);
  live.take_and_answer(0);
  live.answer(1, Answer::Kind::json);
  live.stream.disconnected(ConnectionEnd::clean, live.now);
  live.answer(2, Answer::Kind::json);
  CHECK(tapped.answers ==
        std::vector<test::Tapped::Answered>{{0, 0, "said"}, {1, 0, "said"}, {2, 0, "said"}});
}

TEST_CASE_METHOD(TappedStream, "a tap does not see rows without an answer as answered") {
  live.send(20);
  live.take_and_answer(2);
  CHECK(tapped.answers.empty());
}

TEST_CASE_METHOD(TappedStream, "a tap is closed once, when the last result is written") {
  live.writes = false;
  live.send(10);
  live.stream.end(live.now);
  live.answer(2, Answer::Kind::json);
  CHECK(tapped.closed.empty());
  live.write();
  CHECK(tapped.closed == std::vector{Closed{StreamClosing::end, true}});
  live.stream.release(live.now);
  CHECK(tapped.closed.size() == 1);
}

TEST_CASE_METHOD(TappedStream, "the tap of a stream that its lanes drop is closed without an end") {
  live.send(15);
  live.take(1);
  live.stream.dropped(ErrorCode::no_worker, live.now);
  CHECK(tapped.closed == std::vector{Closed{StreamClosing::no_worker, false}});
}

TEST_CASE(
    "the tap of a stream that is dropped before its last row is cut is closed without an end") {
  TappedStream stream({.size = 10, .right = 40});
  stream.live.send(10 * (max_ready_rows + 3));
  stream.live.stream.end(stream.live.now);
  REQUIRE(stream.tapped.events.back().first.kind == Kind::end);
  REQUIRE_FALSE(stream.tapped.rows.back().is(flag::end));
  stream.live.stream.dropped(ErrorCode::no_worker, stream.live.now);
  CHECK(stream.tapped.closed == std::vector{Closed{StreamClosing::no_worker, false}});
}

TEST_CASE_METHOD(TappedStream, "the tap of an aborted stream is closed with an end") {
  live.send(15);
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  CHECK(tapped.events.back().first.kind == Kind::abort);
  live.stream.dropped(std::nullopt, live.now);
  CHECK(tapped.closed == std::vector{Closed{StreamClosing::client_gone, true}});
}

TEST_CASE("a tap adds no allocation per message") {
  auto tap = std::make_unique<IdleTap>();
  const IdleTap& seen = *tap;
  test::LiveStream live({.id = StreamId{5},
                         .type = {},
                         .format = format_of(SampleFormat::s16le, {}),
                         .chunk = {.spec = {.size = 1600, .left = 400}},
                         .frames_limit = 80000},
                        100, std::move(tap));
  live.lane.rows.reserve(1000);
  const std::vector<std::byte> message(3 * 1600 * sizeof(std::int16_t));
  const auto round = [&] {
    live.stream.frames(message, live.now);
    live.stream.flush(std::nullopt, live.now);
    live.stream.gap(10, live.now);
    live.take_and_answer(4);
  };
  for (int i = 0; i < 10; ++i) round();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 100; ++i) round();
  CHECK(test::allocations() == before);
  CHECK(seen.bytes == 110 * message.size());
}
