// SPDX-License-Identifier: Apache-2.0
// The messages between a client and its stream.
#include "streams/stream.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/streams/live_stream.h"

using namespace millrace;
using test::at;
using test::begins;
using test::ends;
using test::LiveStream;
using test::resumes;
using test::Rows;
using test::Said;
using test::tens;

TEST_CASE("a client receives results and flushes in order, and closed at the end") {
  LiveStream live(tens);
  live.send(15);
  live.stream.flush(7, live.now);
  live.stream.end(live.now);
  live.answer(1, Answer::Kind::text);
  CHECK(live.said() == Said{"result 0 said"});
  live.answer(1, Answer::Kind::json);
  CHECK(live.said() == Said{"result 1 said", "flushed 7"});
  CHECK_FALSE(live.stream.finished());
  live.answer(1, Answer::Kind::error);
  CHECK(live.said() == Said{"result 2 said", "closed 15 2"});
  CHECK(live.stream.finished());
}

TEST_CASE("a result has the markers that the lane added") {
  LiveStream live(tens);
  live.send(20);
  live.answer(1);
  live.stream.done({.flags = flag::reset, .seq = 1, .answer = {Answer::Kind::text, ""}}, live.now);
  CHECK(live.client.flags == std::vector<std::uint8_t>{flag::reset});
}

TEST_CASE("a RESET that the lane added is counted when its row is done") {
  LiveStream live(tens);
  live.send(10);
  live.stream.done({.flags = flag::reset, .reason = ResetReason::worker_lost, .seq = 0}, live.now);
  CHECK(live.stats.resets[ResetReason::worker_lost].value() == 1);
  CHECK(live.stats.resets[ResetReason::start].value() == 1);
}

TEST_CASE("a client receives no message for a row without an answer") {
  LiveStream live(tens);
  live.send(10);
  live.stream.flush(1, live.now);
  live.answer(2);
  CHECK(live.said() == Said{"flushed 1"});
}

TEST_CASE("a frame may be split between messages") {
  LiveStream live({.size = 2});
  const auto bytes = test::bytes_of<std::int16_t>({1, 2});
  live.stream.frames(Bytes(bytes).first(1), live.now);
  live.stream.frames(Bytes(), live.now);
  live.stream.frames(Bytes(bytes).subspan(1), live.now);
  CHECK(live.rows().size() == 1);
  CHECK(live.window(0) == std::vector<int>{1, 2});
}

TEST_CASE("half a frame at the end is rejected, and the stream ends") {
  LiveStream live(tens);
  live.send(4);
  live.stream.frames(test::bytes_of<std::uint8_t>({1}), live.now);
  live.stream.end(live.now);
  CHECK(live.said() == Said{"rejected values 0"});
  CHECK(live.rows() == Rows{{0, 0, 0, 4, 0, begins | ends, 0}});
  live.answer(1);
  CHECK(live.said() == Said{"closed 4 1"});
}

TEST_CASE("half a frame before a gap is rejected, and is not part of the frame after it") {
  LiveStream live({.size = 2});
  live.send(2);
  live.stream.frames(test::bytes_of<std::uint8_t>({1}), live.now);
  live.stream.gap(10, live.now);
  CHECK(live.said() == Said{"rejected values 0"});
  live.stream.frames(test::bytes_of<std::uint8_t>({1}), live.now);
  live.stream.end(live.now);
  CHECK(live.said() == Said{"rejected values 0"});
  live.answer(live.rows().size());
  CHECK(live.said() == Said{"closed 2 1"});
}

TEST_CASE("after the end, every message except another end is rejected") {
  LiveStream live(tens);
  live.stream.end(live.now);
  live.stream.end(live.now);
  CHECK(live.said().empty());
  live.send(10);
  live.stream.flush(7, live.now);
  live.stream.gap(10, live.now);
  CHECK(live.said() == Said{"rejected unknown_stream 0", "rejected unknown_stream 0",
                            "rejected unknown_stream 0"});
  CHECK(live.rows() == Rows{{0, 0, 0, 0, 0, begins | ends, 0}});
  live.answer(1);
  CHECK(live.said() == Said{"closed 0 0"});
}

TEST_CASE("frames after a gap have positions after it") {
  const std::uint64_t gap = GENERATE(1U, 100U, 1U << 31);
  LiveStream live({.size = 4, .left = 2});
  live.send(5);
  live.stream.gap(gap, live.now);
  live.send(4);
  CHECK(live.rows() == Rows{{0, 0, 0, 4, 0, begins, 0},
                            {1, 4, 2, 1, 0, flag::last, 0},
                            {2, 5 + gap, 0, 4, 0, resumes, gap}});
  CHECK(live.window(1) == std::vector<int>{3, 4, 5});
  CHECK(live.window(2) == std::vector<int>{6, 7, 8, 9});
  CHECK(live.lane.rows[2].row.reason == ResetReason::gap);
  CHECK(live.stats.lost[Loss::gap].value() == gap);
  live.stream.end(live.now);
  live.answer(4);
  CHECK(live.said() == Said{"closed 9 3"});
}

TEST_CASE("a waiting gap moves only the frames after it") {
  LiveStream live({.size = 4, .left = 2});
  live.send(4 * 8 + 6);
  live.stream.gap(100, live.now);
  live.send(4);
  live.take_and_answer(8);
  CHECK(live.rows().size() == 11);
  CHECK(live.window(8) == std::vector<int>{31, 32, 33, 34, 35, 36});
  CHECK(live.window(9) == std::vector<int>{35, 36, 37, 38});
  CHECK(live.rows()[10] == Rows::value_type{10, 138, 0, 4, 0, resumes, 100});
  CHECK(live.window(10) == std::vector<int>{39, 40, 41, 42});
}

TEST_CASE("a gap of no frames is rejected") {
  LiveStream live(tens);
  live.stream.gap(0, live.now);
  CHECK(live.said() == Said{"rejected schema 0"});
}

TEST_CASE("positions end at 2^53") {
  LiveStream live(tens);
  live.stream.gap((std::uint64_t{1} << 53) - 10, live.now);
  live.send(10);
  CHECK(live.said().empty());
  CHECK(live.rows().back()[1] == (std::uint64_t{1} << 53) - 10);
  live.send(1);
  CHECK(live.said() == Said{"error values"});
  CHECK(live.rows().back()[5] == (ends | flag::abort));

  LiveStream other(tens);
  other.stream.gap(std::numeric_limits<std::uint64_t>::max(), other.now);
  CHECK(other.said() == Said{"error values"});
  CHECK(other.stats.lost[Loss::gap].value() == 0);
}

TEST_CASE("a message with NaN is rejected, and its frames become a gap") {
  StreamSettings settings{.id = {},
                          .format = format_of(SampleFormat::f32le, {}),
                          .chunk = {.spec = {.size = 2}},
                          .frames_limit = 100};
  LiveStream live(settings);
  live.stream.frames(test::bytes_of({0.5f}), live.now);
  live.stream.frames(test::bytes_of({0.5f, std::numeric_limits<float>::quiet_NaN(), 0.5f}),
                     live.now);
  CHECK(live.said() == Said{"rejected values 3"});
  live.stream.frames(test::bytes_of({0.25f, 2.0f}), live.now);
  CHECK(live.rows() == Rows{{0, 0, 0, 1, 0, begins | flag::last, 0}, {1, 4, 0, 2, 0, resumes, 3}});
  CHECK(live.window(1) == std::vector<int>{8192, 32767});
  CHECK(live.stats.lost[Loss::rejected].value() == 3);
  CHECK(live.stats.frames.value() == 3);
  CHECK(live.stats.clamped.value() == 1);
}

TEST_CASE("a stream whose values are mostly clamped causes one warning") {
  StreamSettings settings{.id = {},
                          .format = format_of(SampleFormat::f32le, {}),
                          .chunk = {.spec = {.size = 4000}},
                          .frames_limit = 100'000};
  LiveStream live(settings);  // 16 000 frames a second
  const std::vector<float> fine(4000, 0.5f), wrong(4000, 500.0f);
  std::vector<float> half = fine;
  std::fill_n(half.begin(), 2000, 2.0f);
  const auto send = [&](const std::vector<float>& values) {
    live.stream.frames(test::bytes_of(values), live.now);
    return live.said();
  };
  CHECK(send(fine).empty());
  CHECK(send(half).empty());
  CHECK(send(wrong) == Said{"warning values"});
  CHECK(send(wrong).empty());
}

TEST_CASE(
    "a stream that begins like a container, or has a command as samples, causes one warning") {
  const std::string first =
      GENERATE(std::string("RIFF\x24\x7d\0\0WAVEfmt ", 16), std::string("OggS\0\2\0\0\0\0\0\0", 12),
               std::string("\x1a\x45\xdf\xa3\x01\0\0\0", 8), std::string("{\"type\": \"end\"} "));
  LiveStream live(tens);
  const auto send = [&](const std::string& bytes) {
    live.stream.frames(std::as_bytes(std::span(bytes)), live.now);
    return live.said();
  };
  const bool split = GENERATE(true, false) && first[0] != '{';
  if (split) CHECK(send(first.substr(0, 2)).empty());
  CHECK(send(split ? first.substr(2) : first) == Said{"warning values"});
  CHECK(send(first).empty());
}

TEST_CASE("samples that are no container cause no warning") {
  LiveStream live(tens);
  const std::vector<std::int16_t> samples(1000, -1025);  // as a bare MPEG frame begins
  live.stream.frames(std::as_bytes(std::span(samples)), live.now);
  const std::string text = "OggS";
  live.stream.frames(std::as_bytes(std::span(text)), live.now);
  CHECK(live.said().empty());
}

TEST_CASE("the frames of a refused message become a gap") {
  LiveStream live(tens);
  live.send(3);
  live.stream.reject(ErrorCode::too_long, "a message has at most 64 KiB", 40000, live.now);
  live.stream.reject(ErrorCode::schema, "no such message", 0, live.now);
  CHECK(live.said() == Said{"rejected too_long 40000", "rejected schema 0"});
  CHECK(live.stream.position() == 40003);
  CHECK(live.rows() == Rows{{0, 0, 0, 3, 0, begins | flag::last, 0}});
}

TEST_CASE("a refused message that goes beyond the last position is an error, not a rejection") {
  LiveStream live(tens);
  live.stream.reject(ErrorCode::too_long, "too long", std::uint64_t{1} << 60, live.now);
  CHECK(live.said() == Said{"error values"});
  CHECK(live.stats.lost[Loss::rejected].value() == 0);
}

TEST_CASE("features are chunked by vectors") {
  StreamSettings settings{
      .id = {},
      .type = {.element = Element::f32, .values = 3, .rate = 12.5, .features = true},
      .format = {.format = SampleFormat::f16le, .values = 3, .rate = 12.5},
      .chunk = {.spec = {.size = 2}},
      .frames_limit = 100};
  LiveStream live(settings);
  const auto bytes = test::bytes_of<std::uint16_t>({0x3c00, 0, 0, 0, 0x4000, 0xc000});
  live.stream.frames(Bytes(bytes).first(7), live.now);
  live.stream.frames(Bytes(bytes).subspan(7), live.now);
  REQUIRE(live.rows().size() == 1);
  CHECK(test::values_of<float>(live.lane.rows[0].window[0]) ==
        std::vector<float>{1, 0, 0, 0, 2, -2});
}
