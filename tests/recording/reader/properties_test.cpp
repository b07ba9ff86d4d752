// SPDX-License-Identifier: Apache-2.0
// Properties of reading, for any recording and any damage.
#include <catch2/catch.hpp>

#include "chunker/chunker.h"
#include "recording/reader/stream_frames.h"
#include "tests/recording/reader/recorded_plan.h"
#include "tests/support/sampled.h"

namespace millrace::recording {
namespace {

using Kind = Event::Kind;

const std::uint64_t rounds = test::sampled(300u);

// Follows the items of a reader beside what was recorded.
class Follower {
 public:
  Follower(const RecordedEvents& recorded, const std::vector<MissingPart>& missing)
      : recorded_(recorded), missing_(missing) {}

  void add(const RecordedItem& item) {
    if (const auto* read = std::get_if<RecordedEvent>(&item)) add(*read);
    if (const auto* answer = std::get_if<RecordedAnswer>(&item)) {
      const auto found =
          std::find(recorded_.answers.begin() + answers_, recorded_.answers.end(), answer->seq);
      REQUIRE(found != recorded_.answers.end());
      answers_ = found + 1 - recorded_.answers.begin();
    }
    totals_ = totals_ || std::holds_alternative<StreamTotals>(item);
  }

  // The number of events that were recorded and not read.
  std::uint64_t finish() {
    CHECK(ended_);
    for (const MissingPart& part : missing_) {
      CHECK_FALSE(part.why.empty());
      CHECK(part.begin <= part.end);
    }
    const auto unread = std::distance(recorded_.events.lower_bound(next_), recorded_.events.end());
    CHECK((!missing_.empty() || (unread == 0 && totals_) || !recorded_.closed));
    return static_cast<std::uint64_t>(unread);
  }

 private:
  void add(const RecordedEvent& read) {
    const Event& event = read.event;
    REQUIRE((event.kind == Kind::open) == (items_ == 0));
    REQUIRE_FALSE(ended_);
    ++items_;
    chunker_.add(event);
    while (chunker_.next()) continue;
    ended_ = event.kind == Kind::end || event.kind == Kind::abort;
    if (event.kind == Kind::open) position_ = event.count;
    if (event.cause != Cause::recorder) match(read);
    if (event.kind == Kind::frames || event.kind == Kind::gap) position_ += event.count;
  }

  // The event is the next one that was recorded at this position.
  void match(const RecordedEvent& read) {
    auto found = recorded_.events.lower_bound(next_);
    const auto is = [&](const RecordedEvents::One& one) {
      return one.event.kind == read.event.kind && one.event.cause == read.event.cause &&
             one.event.count == read.event.count && one.event.mark == read.event.mark &&
             one.event.rows == read.event.rows && one.position == position_ &&
             std::ranges::equal(one.frames, read.frames) && one.text == read.text;
    };
    while (found != recorded_.events.end() && !is(found->second)) ++found;
    REQUIRE(found != recorded_.events.end());
    next_ = found->first + 1;
    // Each event before this one was read, or is named as missing.
    std::uint64_t missing = 0;
    for (const MissingPart& part : missing_) missing += part.events;
    CHECK(next_ == ++given_ + missing);
  }

  const RecordedEvents& recorded_;
  const std::vector<MissingPart>& missing_;
  Chunker chunker_{Spec{.size = 1600}};
  std::uint64_t items_ = 0;
  std::uint64_t next_ = 0;   // number of the event after the last one read
  std::uint64_t given_ = 0;  // events read, without those of the reader
  std::uint64_t position_ = 0;
  std::ptrdiff_t answers_ = 0;
  bool ended_ = false, totals_ = false;
};

// Returns the number of events that were recorded and not read.
std::uint64_t check_all(RecordedPlan& recorded) {
  const auto recordings = recorded.read();
  std::uint64_t unread = 0;
  for (const RecordedStream& stream : recordings->streams()) {
    CAPTURE(stream.meta.number);
    const RecordedEvents& expected = recorded.streams.at(stream.meta.number);
    StreamReader reader(*recordings, stream);
    Follower follower(expected, reader.missing());
    std::uint64_t frames = 0;
    std::string texts, kept_texts;
    while (const auto item = reader.next()) {
      follower.add(*item);
      const auto* read = std::get_if<RecordedEvent>(&*item);
      if (read && read->event.kind == Kind::frames) frames += read->event.count;
      if (read) texts += read->text;
    }
    CHECK(reader.over());
    unread += follower.finish();
    const StreamFrames kept(*recordings, stream);
    CHECK(kept.frames() == frames);
    for (const RecordedEvent& event : kept.events()) kept_texts += event.text;
    CHECK(kept_texts == texts);
    if (stream.whole) CHECK(expected.closed);
  }
  return unread;
}

TEST_CASE("all that was recorded is read", "[property]") {
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    CAPTURE(seed);
    RecordedPlan recorded(seed);
    CHECK(check_all(recorded) == 0);
    CHECK(recorded.read()->streams().size() == recorded.streams.size());
  }
}

TEST_CASE("of a damaged recording no wrong value is read, and missing parts are named",
          "[property]") {
  std::uint64_t unread = 0;
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    CAPTURE(seed);
    RecordedPlan recorded(seed);
    for (std::uint64_t times = 1 + recorded.draw(2); times > 0; --times) recorded.damage();
    unread += check_all(recorded);
  }
  CHECK(unread > rounds);  // the damage was of consequence
}

TEST_CASE("a stream whose file is cut off anywhere is read up to there", "[property]") {
  RecordedDirectory recorded;
  TestStream stream(1);
  FileWriter writer = recorded.begin(1);
  for (int slices = 0; slices < 6; ++slices) {
    stream.add(writer, 5);
    expect(writer.write());
  }
  std::uint64_t before = 6 * 5;
  std::uint64_t bytes = std::filesystem::file_size(recorded.file(1));
  while (bytes >= test::byte_step()) {
    bytes -= test::byte_step();
    std::filesystem::resize_file(recorded.file(1), bytes);
    const auto recordings = recorded.read();
    const auto found = recordings->find(1);
    const std::uint64_t frames = found ? StreamFrames(*recordings, *found).frames() : 0;
    CHECK(frames % 5 == 0);
    CHECK(frames <= before);
    before = frames;
  }
}

}  // namespace
}  // namespace millrace::recording
