// SPDX-License-Identifier: Apache-2.0
// Rows and windows that are cut from the files are those that the live streams gave to their lanes.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "chunker/chunker.h"
#include "recording/format/row_digest.h"
#include "recording/reader/stream_reader.h"
#include "tests/service/recorder/live_play.h"
#include "tests/support/failing_disk.h"

using namespace millrace;
using namespace millrace::recording;
using test::Draw;
using test::LivePlay;
using Kind = Event::Kind;

namespace {

// What happened in all plays.
struct Happened {
  std::uint64_t streams = 0, whole = 0, rows = 0, answers = 0, texts = 0, aborts = 0, files = 0,
                missing = 0;
};

// What a reader returns of a stream, cut again.
class Replayed {
 public:
  explicit Replayed(StreamReader& reader)
      : frame_bytes_(reader.stream().meta.frames.bytes()),
        chunker_(rule_of(reader.stream().meta).chunker_spec()) {
    while (const auto item = reader.next()) {
      if (const auto* read = std::get_if<RecordedEvent>(&*item)) add(*read);
      if (const auto* answer = std::get_if<RecordedAnswer>(&*item))
        answers.push_back({answer->seq, number(answer->batch), std::string(answer->data)});
      if (const auto* end = std::get_if<StreamTotals>(&*item)) totals = *end;
    }
  }

  Bytes window(const Row& row) const {
    return Bytes(frames).subspan(row.window_begin() * frame_bytes_, row.window() * frame_bytes_);
  }

  std::vector<Row> rows;
  std::vector<std::byte> frames;  // by position; zeros where frames are missing
  std::vector<bool> is_read;      // by position
  std::vector<std::byte> texts;   // of all events that have one
  std::vector<test::Tapped::Answered> answers;
  std::optional<StreamTotals> totals;
  RowDigest digest;

 private:
  static ChunkRule rule_of(const StreamMeta& meta) {
    return expect(
        rule_from_json(meta.rule, {.rate = meta.frames.rate, .features = meta.frames.features}));
  }
  void add(const RecordedEvent& read) {
    const Event& event = read.event;
    if (event.kind == Kind::frames) {
      REQUIRE(read.frames.size() == event.count * frame_bytes_);
      frames.insert(frames.end(), read.frames.begin(), read.frames.end());
      is_read.resize(is_read.size() + event.count, true);
    }
    if (event.kind == Kind::gap) {
      frames.resize(frames.size() + event.count * frame_bytes_);
      is_read.resize(is_read.size() + event.count, false);
    }
    const Bytes text = std::as_bytes(std::span(read.text));
    texts.insert(texts.end(), text.begin(), text.end());
    chunker_.add(event);
    while (const auto row = chunker_.next()) {
      rows.push_back(*row);
      digest.add(*row);
    }
  }

  std::size_t frame_bytes_;
  Chunker chunker_;
};

// All values of the stream are at the positions where the live chunker had them.
void check_values(const Replayed& replayed, const LivePlay& live) {
  const auto values = test::values_of<std::int16_t>(live.tapped.frames);
  const auto again = test::values_of<std::int16_t>(replayed.frames);
  std::size_t position = 0, next = 0;
  for (const auto& [event, at] : live.tapped.events) {
    if (event.kind == Kind::gap) position += event.count;
    if (event.kind != Kind::frames) continue;
    for (std::uint64_t i = 0; i < event.count; ++i, ++position, ++next)
      if (position < again.size() && replayed.is_read[position] && again[position] != values[next])
        FAIL("another value at position " << position);
  }
  REQUIRE(replayed.is_read.size() <= position);
}

void check_whole(const Replayed& replayed, const LivePlay& live) {
  REQUIRE(replayed.rows == live.lane.rows);
  REQUIRE(replayed.texts == live.tapped.texts);
  for (std::size_t i = 0; i < replayed.rows.size(); ++i)
    if (!std::ranges::equal(replayed.window(replayed.rows[i]), live.lane.windows[i]))
      FAIL("another value in the window of row " << i);
  REQUIRE(replayed.totals->digest == replayed.digest.value());
  REQUIRE(replayed.totals->rows == replayed.rows.size());
}

// Some streams at a time are recorded, with commits at random times, to files of random sizes.
// With `fails`, the disk fails sometimes, and sometimes memory is short.
class Recorded : RecorderUnderTest {
 public:
  Recorded(std::uint32_t seed, bool fails) : draw_(seed), fails_(fails) {
    settings.file_size = draw_(2000, 60'000);
    settings.commit = std::chrono::milliseconds(draw_(1, 300));
    start();
    for (std::uint32_t more = draw_(1, 4); more > 0; --more) open_stream();
    while (!finished()) act();
    disk_.write = disk_.sync = 0;
    writer.shed(false);
    recorder->shed(false);
    pass(std::chrono::minutes(2));  // until recording resumes
    pass(std::chrono::seconds(2));
    recorder->finish(now);
  }

  void check(Happened& all) {
    const auto recordings = expect(Recordings::open(directory.path()));
    for (std::uint64_t number = 1; number <= streams_.size(); ++number) {
      INFO("stream " << number);
      const LivePlay& live = streams_[number - 1];
      const auto stream = recordings->find(number);
      if (!stream && fails_) continue;
      REQUIRE(stream);
      StreamReader reader(*recordings, *stream);
      const Replayed replayed(reader);
      REQUIRE(reader.over());
      check_values(replayed, live);
      const bool was_ended = live.tapped.closed.at(0).ended;
      if (!fails_) {
        REQUIRE(stream->whole == was_ended);
        REQUIRE(replayed.answers == live.tapped.answers);
        REQUIRE(reader.missing().empty());
      }
      // A commit whose sync failed may be on the disk: then nothing is missing, although the next
      // slice has a record of the loss, and the catalog says that the stream is not whole.
      const bool misses_nothing = was_ended && reader.missing().empty();
      if (misses_nothing) check_whole(replayed, live);
      if (stream->whole) REQUIRE(misses_nothing);
      ++all.streams;
      all.whole += stream->whole ? 1 : 0;
      all.rows += replayed.rows.size();
      all.answers += replayed.answers.size();
      all.texts += replayed.texts.size();
      all.aborts += replayed.rows.back().is(flag::abort) ? 1 : 0;
      all.missing += reader.missing().size();
    }
    all.files += files().size();
  }

 private:
  void open_stream() {
    streams_.emplace_back(streams_.size() + 1, draw_(0, 1'000'000), writer, now);
  }
  bool finished() const {
    return std::ranges::all_of(streams_, [](const LivePlay& live) { return live.finished(); });
  }
  void act() {
    now += std::chrono::milliseconds(draw_(0, 8));
    LivePlay& live = streams_[draw_(0, static_cast<std::uint32_t>(streams_.size()) - 1)];
    if (!live.finished()) live.act(now);
    if (draw_.chance(5)) pass(std::chrono::milliseconds(draw_(0, 100)));
    if (!fails_) return;
    if (draw_.chance(1)) disk_.write = draw_.chance(50) ? EIO : 0;
    if (draw_.chance(1)) disk_.sync = draw_.chance(50) ? EIO : 0;
    if (draw_.chance(1)) writer.shed(draw_.chance(50));
    if (draw_.chance(1)) recorder->shed(draw_.chance(50));
  }

  test::FailingDisk disk_;
  Draw draw_;
  const bool fails_;
  std::deque<LivePlay> streams_;
};

}  // namespace

TEST_CASE("rows and windows that are cut from the files are those of the live streams") {
  Happened all;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Recorded(seed, false).check(all);
  }
  // The plays contain what they are for.
  CHECK(all.whole > 300);
  CHECK(all.whole < all.streams);
  CHECK(all.rows > 10'000);
  CHECK(all.answers > 1000);
  CHECK(all.texts > 10'000);
  CHECK(all.aborts > 50);
  CHECK(all.files > 400);
}

TEST_CASE("if slices were lost, a reader names them and returns no other value") {
  Happened all;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Recorded(seed, true).check(all);
  }
  CHECK(all.whole > 5);
  CHECK(all.missing > 300);
}
