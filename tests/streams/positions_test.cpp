// SPDX-License-Identifier: Apache-2.0
// The positions and the values of streams whose rate is converted.
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "tests/streams/recorded_runs.h"
#include "tests/support/sampled.h"

using namespace millrace;
using test::at;
using test::begins;
using test::LiveStream;
using test::resumes;
using test::Rows;
using test::Said;

namespace {

StreamSettings settings_of(const ClientFormat& format, const FrameType& type = {},
                           std::uint32_t size = 100) {
  return {.id = {},
          .type = type,
          .format = format,
          .chunk = {.spec = {.size = size, .tail = Spec::Tail::cover}},
          .frames_limit = 1'000'000};
}

ClientFormat s16_at(double rate) { return {.rate = rate}; }

std::vector<std::byte> tone(std::size_t frames) {
  std::vector<std::int16_t> values(frames);
  for (std::size_t i = 0; i < frames; ++i) values[i] = static_cast<std::int16_t>(i % 50 * 200);
  return test::bytes_of(std::span<const std::int16_t>(values));
}

// A stream with a random format and rate, whose client sends frames, gaps, refused messages, resets
// and flushes at random. Its audio is kept by runs: one run for each part that is converted anew.
class PositionsPlay {
 public:
  explicit PositionsPlay(std::uint32_t seed) : random_(seed), audio_(random_), runs_(settings()) {
    for (std::uint32_t left = audio_.draw(1, 40); left > 0; --left) act();
    runs_.live.stream.end(at(0));
    drained();
    runs_.serve();
  }

  // Each run has the values of the same bytes converted alone, in one message.
  void check() const {
    REQUIRE(runs_.live.stream.finished());
    for (std::size_t i = 0; i < starts_.size(); ++i) check(starts_[i], messages_[i], ends_[i]);
  }

 private:
  StreamSettings settings() {
    type_ = {.element = audio_.one_of({Element::s16, Element::f32, Element::f16}),
             .values = audio_.draw(1, 2),
             .rate = static_cast<double>(audio_.one_of(
                 {8000u, 16'000u, 22'050u, 24'000u, 48'000u, audio_.draw(1000, 192'000)}))};
    format_ = audio_.format(type_.values);
    converter_.emplace(format_, type_);
    begin_run();
    return settings_of(format_, type_, audio_.draw(1, 300));
  }

  void act() {
    Stream& stream = runs_.live.stream;
    const std::uint32_t what = audio_.draw(1, 100), count = audio_.draw(1, 700);
    if (what <= 70) {
      const auto bytes = audio_.message(format_, count);
      stream.frames(bytes, at(0));
      take(bytes);
    } else if (what <= 78) {
      stream.flush({}, at(0));
    } else if (what <= 84) {
      stream.reset(at(0));
      drained();
    } else {
      const std::uint64_t lost = audio_.draw(1, what % 2 == 0 ? 3 : 700);
      const std::uint64_t frames = converter_->lost_input_frames(lost);
      if (what <= 93)
        stream.gap(lost, at(0));
      else
        stream.reject(ErrorCode::too_long, "", lost, at(0));
      ends_.back() = input_;
      input_ += frames;
      drained();
    }
    runs_.serve();
  }

  // The test counts input frames with a converter of its own.
  void take(const std::vector<std::byte>& bytes) {
    test::CollectedFrames ignored(type_.bytes());
    const auto converted = converter_->convert(bytes, ignored);
    input_ += converted.input_frames;
    if (converted.fault == InputConverter::Fault::none) return messages_.back().push_back(bytes);
    ends_.back() = input_ - converted.input_frames;
    drained();
  }

  void drained() {
    test::CollectedFrames ignored(type_.bytes());
    converter_->drain(0, ignored);
    if (ends_.back() == unknown) ends_.back() = input_;
    REQUIRE(runs_.live.stream.position() == position(input_));
    begin_run();
  }

  void begin_run() {
    starts_.push_back(input_);
    ends_.push_back(unknown);
    messages_.emplace_back();
  }

  std::uint64_t position(std::uint64_t input) const {
    const auto p = static_cast<std::uint64_t>(type_.rate);
    return input * p / static_cast<std::uint64_t>(converter_->input_rate());
  }

  void check(std::uint64_t start, const std::vector<std::vector<std::byte>>& messages,
             std::uint64_t end) const {
    if (end == unknown) return;
    InputConverter alone(format_, type_);
    test::CollectedFrames all(type_.bytes());
    for (const auto& message : messages)
      REQUIRE(alone.convert(message, all).fault == InputConverter::Fault::none);
    alone.drain(start, all);
    REQUIRE(runs_.values(position(start), position(end)) == all.bytes);
  }

  static constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();

  std::mt19937 random_;
  test::RandomAudio audio_;
  FrameType type_;
  ClientFormat format_;
  std::optional<InputConverter> converter_;
  std::uint64_t input_ = 0;
  std::vector<std::uint64_t> starts_, ends_;  // of the runs, in input frames
  std::vector<std::vector<std::vector<std::byte>>> messages_;
  test::RecordedRuns runs_;
};

}  // namespace

TEST_CASE("after 441 frames at 44.1 kHz, the position at 16 kHz is 160 at the end") {
  LiveStream live(settings_of(s16_at(44'100)));
  live.stream.frames(tone(441), at(0));
  CHECK(live.stream.position() < 160);
  live.stream.end(at(0));
  CHECK(live.stream.position() == 160);
  CHECK(live.rows() ==
        Rows{{0, 0, 0, 100, 0, begins, 0}, {1, 100, 0, 60, 0, flag::last | flag::end, 0}});
  live.answer(2);
  CHECK(live.said() == Said{"closed 160 2"});
  CHECK(live.stats.frames.value() == 160);
}

TEST_CASE("a flush cuts at the frames that are there, and the frames in conversion follow it") {
  LiveStream live(settings_of(s16_at(48'000)));
  live.stream.frames(tone(480), at(0));
  const std::uint64_t there = live.stream.position();
  CHECK(there > 0);
  CHECK(there < 160);
  live.stream.flush({}, at(0));
  CHECK(live.stream.position() == there);
  live.stream.end(at(0));
  CHECK(live.stream.position() == 160);
}

TEST_CASE("a drain of the service and a clean disconnect give all frames, an abort does not") {
  for (const int how : {0, 1, 2}) {
    LiveStream live(settings_of(s16_at(48'000)));
    live.stream.frames(tone(480), at(0));
    if (how == 0) live.stream.drain(at(0));
    if (how == 1) live.stream.disconnected(ConnectionEnd::clean, at(0));
    if (how == 2) live.stream.disconnected(ConnectionEnd::lost, at(0));
    CHECK((live.stream.position() == 160) == (how < 2));
  }
}

TEST_CASE("a gap of the client counts its own frames") {
  LiveStream live(settings_of(s16_at(8000)));
  live.stream.frames(tone(50), at(0));
  live.stream.gap(800, at(0));
  live.stream.frames(tone(60), at(0));
  CHECK(live.rows()[0] == Rows::value_type{0, 0, 0, 100, 0, begins, 0});
  live.stream.end(at(0));
  CHECK(live.stream.position() == 1820);
  CHECK(live.rows()[2] == Rows::value_type{2, 1700, 0, 100, 0, resumes, 1600});
  CHECK(live.stats.lost[Loss::gap].value() == 1600);
}

TEST_CASE("a gap that is shorter than a frame of the pipeline ends the run without a gap") {
  LiveStream live(settings_of(s16_at(48'000)));
  live.stream.frames(tone(30), at(0));
  live.stream.gap(1, at(0));
  live.stream.frames(tone(30), at(0));
  live.stream.gap(2, at(0));  // together they are one frame
  live.stream.end(at(0));
  CHECK(live.stream.position() == 21);
  CHECK(live.rows() == Rows{{0, 0, 0, 10, 0, begins | flag::last, 0},
                            {1, 10, 0, 10, 0, flag::reset | flag::segment | flag::last, 0},
                            {2, 21, 0, 0, 0, resumes | flag::last | flag::end, 1}});
  CHECK(live.stats.lost[Loss::gap].value() == 1);
}

TEST_CASE(
    "a resampled message whose last value is NaN is rejected whole, and conversion restarts") {
  LiveStream live(settings_of({.format = SampleFormat::f32le, .rate = 8000}, {}, 150));
  const std::vector<float> good(100, 0.25f);
  std::vector<float> bad(200, 0.5f);
  bad.back() = std::numeric_limits<float>::quiet_NaN();
  live.stream.frames(test::bytes_of(std::span<const float>(good)), at(0));
  live.stream.frames(test::bytes_of(std::span<const float>(bad)), at(0));
  CHECK(live.said() == Said{"rejected values 400"});
  CHECK(live.stream.position() == 600);
  live.stream.frames(test::bytes_of(std::span<const float>(good)), at(0));
  live.stream.end(at(0));
  CHECK(live.rows() == Rows{{0, 0, 0, 150, 0, begins, 0},
                            {1, 150, 0, 50, 0, flag::last, 0},
                            {2, 600, 0, 150, 0, resumes, 400},
                            {3, 750, 0, 50, 0, flag::last | flag::end, 0}});
  CHECK(live.window(0) == live.window(2));
  CHECK(live.window(1) == live.window(3));
}

TEST_CASE("a bad Opus packet is rejected, and its length becomes a gap") {
  LiveStream live(settings_of({.format = SampleFormat::opus, .rate = 48'000}, {}, 320));
  const std::vector<std::byte> silence{std::byte{0xf8}};  // 20 ms
  live.stream.frames(silence, at(0));
  live.stream.frames(std::vector<std::byte>{std::byte{0xfb}}, at(0));
  CHECK(live.said() == Said{"rejected values 320"});
  live.stream.gap(2, at(0));
  live.stream.frames(silence, at(0));
  CHECK(live.stream.position() == 5 * 320);
  CHECK(live.rows().back() == Rows::value_type{2, 4 * 320, 0, 320, 0, resumes, 3 * 320});
}

TEST_CASE("positions end at 2^53 in frames of the client and of the pipeline") {
  constexpr std::uint64_t last = std::uint64_t{1} << 53;
  for (const double rate : {8000.0, 48'000.0}) {
    LiveStream live(settings_of(s16_at(rate)));
    const std::uint64_t most = rate < 16'000 ? last / 2 : last;
    live.stream.gap(most, at(0));
    CHECK(live.said().empty());
    live.stream.frames(tone(1), at(0));
    CHECK(live.said() == Said{"error values"});
  }
  LiveStream packets(settings_of({.format = SampleFormat::opus, .rate = 48'000}));
  packets.stream.gap(last, at(0));  // 20 ms each
  CHECK(packets.said() == Said{"error values"});
}

TEST_CASE("at every drain the position is that of the input, and runs are converted alone") {
  for (std::uint32_t seed = 1; seed <= test::sampled(400u); ++seed) {
    INFO("seed " << seed);
    PositionsPlay(seed).check();
  }
}
