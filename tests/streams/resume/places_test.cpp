// SPDX-License-Identifier: Apache-2.0
// The places from which a stream can be continued, in the frames of its client.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <vector>

#include "streams/frames/frame_counts.h"
#include "tests/streams/recorded_runs.h"
#include "tests/support/sampled.h"

using namespace millrace;
using test::at;

namespace {

StreamSettings settings_of(const ClientFormat& format, double rate = 16'000,
                           std::uint32_t size = 100) {
  return {.id = {},
          .type = {.rate = rate},
          .format = format,
          .chunk = {.spec = {.size = size, .tail = Spec::Tail::cover}},
          .frames_limit = 1'000'000};
}

ClientFormat s16_at(double rate) { return {.rate = rate}; }

constexpr ClientFormat opus{.format = SampleFormat::opus, .rate = 48'000};

// A packet of silence: 10, 20, 40 or 60 ms.
std::vector<std::byte> packet(std::uint32_t length) {
  constexpr std::array<std::uint8_t, 4> heads{0xf0, 0xf8, 0x10, 0x18};
  return {static_cast<std::byte>(heads[length])};
}

std::vector<std::byte> noise(std::size_t frames) {
  std::vector<std::int16_t> values(frames);
  for (std::size_t i = 0; i < frames; ++i) values[i] = static_cast<std::int16_t>(i * 7919 % 20'000);
  return test::bytes_of(std::span<const std::int16_t>(values));
}

ResumePoint point_after(const ClientFormat& format, std::size_t frames, std::uint32_t size = 100) {
  const ResumeSettings resume{};
  test::RecordedRuns runs(settings_of(format, 16'000, size), &resume);
  runs.live.stream.frames(noise(frames), at(0));
  runs.serve();
  return runs.live.stream.resume_point();
}

// A client's input, in order: frames, packets, gaps and resets.
struct Input {
  std::vector<std::byte> bytes;          // empty: a command
  std::uint64_t gap = 0;                 // 0: a reset
  std::uint64_t frame = 0, command = 0;  // before it
  std::uint64_t frames = 0;              // of the client, lost ones included
};

// A stream of a random client that is lost after a random message, and opened anew.
class PlacesPlay {
 public:
  explicit PlacesPlay(std::uint32_t seed)
      : random_(seed),
        format_(format()),
        settings_(settings_of(format_, rate_, draw(1, 400))),
        resume_{.longest_segment = draw(0, 1) * 2000},
        whole_(settings_, &resume_) {
    const std::uint32_t messages = draw(1, 25), lost_after = draw(0, messages);
    for (std::uint32_t i = 0; i < messages; ++i) {
      if (i == lost_after) start_ = whole_.live.stream.resume_point();
      inputs_.push_back(input());
      give(inputs_.back(), 0, whole_);
    }
    if (lost_after == messages) start_ = whole_.live.stream.resume_point();
    end(whole_);
    continue_anew();
  }

  void check() const {
    if (!is_comparable_) return;
    const auto before = rows(whole_, start_.seq), after = rows(*anew_, start_.seq);
    // A gap ends no segment of its own if the stream opened anew has no frame before it.
    const std::size_t skipped = before.size() - after.size();
    REQUIRE((skipped == 0 || (skipped == 1 && before.front()[3] == 0)));
    REQUIRE(std::equal(after.begin(), after.end(),
                       before.begin() + static_cast<std::ptrdiff_t>(skipped),
                       [&](const auto& row, const auto& was) {
                         return row[0] + skipped == was[0] && row[1] == was[1] &&
                                row[3] == was[3] && row[5] == was[5];
                       }));
    REQUIRE(anew_->live.lane.rows.front().row.is(flag::reset));
    REQUIRE(anew_->live.stream.position() == whole_.live.stream.position());
    if (format_.rate == rate_ && format_.format != SampleFormat::opus)
      REQUIRE(anew_->values(start_.begin, max_position) ==
              whole_.values(start_.begin, max_position));
  }

 private:
  using Rows = std::vector<test::Rows::value_type>;

  std::uint32_t draw(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random_);
  }

  ClientFormat format() {
    constexpr std::array rates{8000.0, 16'000.0, 44'100.0, 48'000.0, 22'050.0};
    rate_ = rates[draw(0, 4)];
    return draw(0, 2) == 0 ? opus : s16_at(rates[draw(0, 4)]);
  }

  Input input() {
    Input next{.bytes = {}, .gap = 0, .frame = frames_, .command = commands_, .frames = 0};
    const std::uint32_t what = draw(1, 100);
    if (what <= 75) {
      const bool packets = format_.format == SampleFormat::opus;
      next.frames = packets ? 1 : draw(1, 900);
      next.bytes = packets ? packet(draw(0, 3)) : noise(next.frames);
    } else {
      if (what <= 90) next.frames = next.gap = draw(1, what % 2 == 0 ? 3 : 700);
      ++commands_;
    }
    frames_ += next.frames;
    return next;
  }

  // Gives the stream the part of an input from a frame of the client on.
  static void give(const Input& input, std::uint64_t from, test::RecordedRuns& runs) {
    Stream& stream = runs.live.stream;
    if (!input.bytes.empty()) {
      const std::size_t frame_bytes = input.bytes.size() / input.frames;
      const std::uint64_t skipped = std::max(from, input.frame) - input.frame;
      stream.frames(Bytes(input.bytes).subspan(skipped * frame_bytes), at(0));
    } else if (input.gap > 0) {
      REQUIRE(input.frame >= from);
      stream.gap(input.gap, at(0));
    } else {
      stream.reset(at(0));
    }
    runs.serve();
  }
  static void end(test::RecordedRuns& runs) {
    runs.live.stream.end(at(0));
    runs.serve();
  }

  // As the client does: frames and commands from the place on, in order.
  void continue_anew() {
    resume_.start = start_;
    anew_ = std::make_unique<test::RecordedRuns>(settings_, &resume_);
    bool has_packet = false;
    for (const Input& input : inputs_) {
      const bool is_command = input.bytes.empty();
      const bool is_done = is_command ? input.command < start_.commands
                                      : input.frame + input.frames <= start_.frames;
      if (is_done && !is_command) continue;
      // Lost packets are as long as the packet before them, which the new stream may not have.
      has_packet |= !is_command;
      is_comparable_ &= has_packet || input.gap == 0 || format_.format != SampleFormat::opus;
      if (!is_done) give(input, start_.frames, *anew_);
      if (is_done && is_command) REQUIRE(input.frame + input.frames <= past(input));
    }
    end(*anew_);
  }
  // Frames that a gap lost before the place are not asked for.
  std::uint64_t past(const Input& input) const {
    return input.gap > 0 ? start_.frames : input.frame;
  }

  // The rows from this number on, without the flags of the first row of a stream.
  static Rows rows(const test::RecordedRuns& runs, std::uint64_t from) {
    Rows all;
    for (auto row : runs.live.rows()) {
      if (row[0] < from) continue;
      row[5] &= flag::last | flag::end;
      all.push_back(row);
    }
    return all;
  }

  std::mt19937 random_;
  double rate_ = 0;  // of the pipeline
  const ClientFormat format_;
  const StreamSettings settings_;
  ResumeSettings resume_;
  test::RecordedRuns whole_;
  std::unique_ptr<test::RecordedRuns> anew_;
  std::vector<Input> inputs_;
  std::uint64_t frames_ = 0, commands_ = 0;  // of the client so far
  ResumePoint start_;
  bool is_comparable_ = true;
};

}  // namespace

TEST_CASE("at equal rates a place is a frame of the client") {
  CHECK(point_after(s16_at(16'000), 250) == ResumePoint{.seq = 2, .frames = 200, .begin = 200});
}

TEST_CASE("a place can lie inside a frame of a client with a lower rate") {
  CHECK(point_after(s16_at(8000), 200, 101) ==
        ResumePoint{.seq = 3, .frames = 151, .begin = 303, .skip = 1});
  CHECK(point_after(s16_at(8000), 200, 100).skip == 0);
}

TEST_CASE("a place is the first frame of a client with a higher rate that is not before it") {
  const ResumePoint third = point_after(s16_at(48'000), 1000);
  CHECK(third.begin > 0);
  CHECK(third.frames == 3 * third.begin);
  const ResumePoint point = point_after(s16_at(44'100), 3000);
  CHECK(point.begin == 100 * point.seq);
  CHECK(FrameCounts(44'100, 16'000).position(point.frames) == point.begin);
  CHECK(FrameCounts(44'100, 16'000).position(point.frames - 1) == point.begin - 1);
  CHECK(point.skip == 0);
}

TEST_CASE("a place lies in a packet of the client") {
  const ResumeSettings resume{};
  test::RecordedRuns runs(settings_of(opus, 16'000, 110), &resume);
  for (const std::uint32_t length : {0u, 1u, 3u, 0u}) {  // 160, 320, 960 and 160 frames
    runs.live.stream.frames(packet(length), at(0));
    runs.serve();
  }
  CHECK(runs.live.stream.received().frames == 4);
  CHECK(runs.live.stream.resume_point() ==
        ResumePoint{.seq = 14, .frames = 3, .begin = 1540, .skip = 100});
}

TEST_CASE("a place after a gap is the first frame after the gap at any rate") {
  for (const double rate : {8000.0, 44'100.0, 48'000.0}) {
    const ResumeSettings resume{};
    test::RecordedRuns runs(settings_of(s16_at(rate)), &resume);
    runs.live.stream.frames(noise(101), at(0));
    for (std::uint64_t lost = 1; lost < 8; ++lost) {
      runs.live.stream.gap(lost, at(0));
      runs.live.stream.flush({}, at(0));
      runs.serve();
      const ResumePoint point = runs.live.stream.resume_point();
      CHECK(point.frames == runs.live.stream.received().frames);
      CHECK(point.skip == 0);
    }
  }
}

TEST_CASE("a place that the client has is found after the places before it are forgotten") {
  const ResumeSettings resume{};
  test::RecordedRuns runs(settings_of(opus, 16'000, 320), &resume);
  for (std::uint32_t i = 0; i < 100; ++i) {
    runs.live.stream.frames(packet(i % 2), at(0));
    runs.serve();
    const ResumePoint point = runs.live.stream.resume_point();
    runs.live.stream.forget_before(point);
    CHECK(runs.live.stream.resume_point() == point);
    CHECK(point.frames >= i);
  }
}

TEST_CASE("a stream that is opened anew at a place has the rows of the whole stream",
          "[property]") {
  for (std::uint32_t seed = 1; seed <= test::sampled(1600u); ++seed) {
    INFO("seed " << seed);
    PlacesPlay(seed).check();
  }
}
