// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "tests/cutting/expected_rows.h"
#include "tests/streams/live_stream.h"
#include "tests/streams/random_settings.h"
#include "tests/support/sampled.h"

using namespace millrace;
using Kind = Event::Kind;

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// A stream of floats with random rules. Its client sends random messages in random pieces and
// obeys pauses. Its lane takes and finishes rows at random times. The input is recorded as events
// and as values by position. The pool keeps no spare blocks, so that a sanitizer detects late
// reads.
class StreamPlay {
 public:
  explicit StreamPlay(std::uint32_t seed)
      : draw_(seed), settings_(settings()), values_(settings_.type.values), live_(settings_, 0) {
    while (!over_) act();
    while (!live_.stream.finished()) serve();
  }

  void check() const {
    test::ExpectedRows expected(
        settings_.chunk, settings_.endpoint,
        [&](std::uint64_t bodies, std::uint64_t) { return size_of_body(bodies); });
    Lines marks;
    for (const Event& event : events_) {
      const std::size_t before = expected.rows().size();
      expected.add(event);
      if (listens_ && event.mark && expected.rows().size() > before)
        marks.push_back("flushed " + std::to_string(*event.mark));
    }
    REQUIRE(live_.rows() == expected.rows());
    test::LiveStream::Carried carried;
    for (std::size_t i = 0; i < posted_.size(); ++i)
      carried.emplace_back(expected.messages()[i][1], expected.messages()[i][0], posted_[i]);
    CHECK(live_.carried() == carried);
    CHECK(received_marks() == marks);
    CHECK(live_.stats.buffer.value() == 0);
    CHECK(live_.stats.open.value() == 0);
  }

 private:
  using Lines = std::vector<std::string>;

  // Without the decisions that depend on times.
  StreamSettings settings() {
    StreamSettings settings = test::random_settings(draw_);
    settings.type.element = Element::f32;
    settings.type.values = draw_(1, 3);
    settings.format = format_of(SampleFormat::f32le, settings.type);
    SizeRule& sizes = settings.chunk.sizes;
    if (sizes.by == SizeRule::By::adaptive) sizes.by = SizeRule::By::random;
    if (settings.endpoint) settings.endpoint->by = EndpointRule::By::length;
    settings.shed_after.reset();
    return settings;
  }

  // One random action.
  void act() {
    if (draw_.chance(30)) return serve();
    if (live_.stream.paused()) return serve();
    const std::uint32_t what = draw_(1, 100);
    if (what <= 75) return message();
    if (what <= 85) return flush();
    if (what <= 89) return add({.kind = Kind::reset}), live_.stream.reset(live_.now);
    if (what <= 95) return gap();
    if (what <= 97) return stop();
    return post();
  }

  // Sends floats, split anywhere: the remaining bytes are sent first the next time.
  void message() {
    const std::uint32_t count = draw_(0, draw_.chance(5) ? 2000 : 60) * values_ / 2;
    for (std::uint32_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(++sent_);
      const auto bytes = test::bytes_of({value});
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    const bool bad = draw_.chance(5) && bytes_.size() >= 4 * values_ + given_ % 4;
    const std::size_t size =
        bad ? bytes_.size() : draw_(0, static_cast<std::uint32_t>(bytes_.size()));
    std::vector<std::byte> bytes(bytes_.begin(),
                                 bytes_.begin() + static_cast<std::ptrdiff_t>(size));
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size));
    const std::size_t frame = 4 * values_;
    const std::uint64_t frames = (given_ % frame + size) / frame;
    if (bad) spoil(bytes);
    for (std::size_t i = 0; i < frames; ++i) positions_.push_back(bad ? 0 : frame_number(i));
    given_ += size;
    if (frames > 0)
      add({.kind = bad ? Kind::gap : Kind::frames,
           .cause = bad ? Cause::rejected : Cause::client,
           .count = frames});
    live_.stream.frames(bytes, live_.now);
    part_.insert(part_.end(), bytes.begin(), bytes.end());
    part_.erase(part_.begin(), part_.end() - static_cast<std::ptrdiff_t>(given_ % (4 * values_)));
    check_bounds(frames);
  }

  // Sets the last value of the last frame that the message completes to NaN.
  void spoil(std::vector<std::byte>& bytes) {
    const std::size_t frame = 4 * values_;
    const std::size_t end = (given_ + bytes.size()) / frame * frame;
    const auto value = test::bytes_of({nan});
    const std::size_t at = end - 4 - given_;
    std::copy(value.begin(), value.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }

  // The number of the i-th frame that the next message completes, from 1.
  std::uint64_t frame_number(std::size_t i) const { return given_ / (4 * values_) + i + 1; }

  void flush() {
    const std::optional<std::uint64_t> mark =
        draw_.chance(50) ? std::optional<std::uint64_t>(draw_(0, 1000)) : std::nullopt;
    add({.kind = Kind::flush, .mark = mark});
    live_.stream.flush(mark, live_.now);
  }

  void post() {
    const std::string text = "message " + std::to_string(events_.size());
    const std::size_t before = live_.client.said.size();
    live_.stream.post(text, live_.now);
    if (live_.client.said.size() > before && live_.client.said.back() == "rejected too_fast 0")
      return;
    posted_.push_back(text);
    add({.kind = Kind::message, .count = text.size()});
  }

  // The stream drops the partial frame before the gap: that frame is sent again whole.
  void gap() {
    given_ -= part_.size();
    bytes_.insert(bytes_.begin(), part_.begin(), part_.end());
    part_.clear();
    const std::uint32_t frames = draw_(1, 50);
    positions_.insert(positions_.end(), frames, 0);
    add({.kind = Kind::gap, .count = frames});
    live_.stream.gap(frames, live_.now);
  }

  void stop() {
    over_ = true;
    const bool begun = taken_ > 0;  // otherwise an abort would drop the waiting events
    if (!begun || draw_.chance(50)) {
      add({.kind = Kind::end});
      live_.stream.end(live_.now);
    } else {
      listens_ = false;
      add({.kind = Kind::abort, .cause = Cause::connection});
      live_.stream.disconnected(ConnectionEnd::lost, live_.now);
    }
  }

  void add(const Event& event) { events_.push_back(event); }

  // The lane takes some rows, or finishes one, whose frames must be unchanged.
  void serve() {
    live_.now += std::chrono::milliseconds(1);
    const std::size_t given = live_.lane.rows.size();
    REQUIRE(given - std::max<std::size_t>(taken_, live_.answered) <= max_ready_rows);
    if (draw_.chance(50) && taken_ < given) {
      for (std::size_t rows = draw_(1, static_cast<std::uint32_t>(given - taken_)); rows > 0;
           --rows) {
        const Row& row = live_.lane.rows[taken_++].row;
        if (live_.lane.rows[row.seq].notify_batched) live_.stream.batched(row.seq, live_.now);
      }
    } else if (live_.answered < taken_) {
      check_window(live_.lane.rows[live_.answered]);
      live_.answer(1);
    }
    check_bounds(0);
  }

  void check_window(const ReadyRow& ready) {
    std::vector<float> values;
    for (Bytes part : ready.window)
      for (float value : test::values_of<float>(part)) values.push_back(value);
    REQUIRE(values.size() == ready.row.window() * values_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t position = ready.row.window_begin() + i / values_;
      const std::uint64_t value = (positions_[position] - 1) * values_ + i % values_ + 1;
      if (values[i] != static_cast<float>(value))
        FAIL("value " << i << " of row " << ready.row.seq);
    }
  }

  // The bound for a client that obeys pauses: the limit, and the message that exceeded it.
  void check_bounds(std::uint64_t message_frames) {
    largest_ = std::max(largest_, message_frames);
    const std::size_t block = live_.pool.block_bytes();
    const std::size_t held = (settings_.frames_limit + largest_) * 4 * values_;
    REQUIRE(live_.stats.buffer.value() <= static_cast<std::int64_t>((held / block + 2) * block));
  }

  std::uint32_t size_of_body(std::uint64_t bodies) const {
    if (settings_.requested_size) return *settings_.requested_size;
    const SizeRule& sizes = settings_.chunk.sizes;
    const bool drawn = sizes.by == SizeRule::By::random;
    return drawn ? drawn_size(sizes, settings_.name, bodies) : settings_.chunk.spec.size;
  }

  Lines received_marks() const {
    Lines marks;
    for (const std::string& line : live_.client.said)
      if (listens_ && line.starts_with("flushed")) marks.push_back(line);
    return marks;
  }

  test::Draw draw_;
  const StreamSettings settings_;
  const std::uint32_t values_;  // of a frame
  test::LiveStream live_;

  std::vector<Event> events_;
  std::vector<std::string> posted_;       // the texts of its messages
  std::vector<std::uint64_t> positions_;  // which frame is there, counted from 1; 0: it was lost
  std::deque<std::byte> bytes_;           // bytes of the client, not sent yet
  std::vector<std::byte> part_;           // part of a frame, sent last
  std::uint64_t sent_ = 0;                // values
  std::uint64_t given_ = 0;               // bytes
  std::uint64_t largest_ = 0;             // frames of one message
  std::size_t taken_ = 0;
  bool over_ = false;
  bool listens_ = true;
};

}  // namespace

TEST_CASE("rows and frames depend on the events, not on the order of arrivals and answers") {
  for (std::uint32_t seed = 1; seed <= test::sampled(600u); ++seed) {
    INFO("seed " << seed);
    StreamPlay(seed).check();
  }
}
