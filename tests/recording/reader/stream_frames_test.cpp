// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/stream_frames.h"

#include <catch2/catch.hpp>

#include "tests/recording/reader/recorded_directory.h"

namespace millrace::recording {
namespace {

using Kind = Event::Kind;

TEST_CASE("any frames of a stream are read, in place if they lie in one slice") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream stream(1);
  std::vector<std::byte> expected;
  for (const std::size_t frames : {5, 1, 40'000, 7}) {
    const auto bytes = stream.frames_of(frames);
    expected.insert(expected.end(), bytes.begin(), bytes.end());
    stream.add(writer, frames, frames == 7);
  }
  seal(writer);
  const auto recordings = recorded.read();
  const StreamFrames frames(*recordings, recordings->find(1).value());
  REQUIRE(frames.frames() == 40'013);
  const std::uint64_t places[] = {0, 1, 4, 5, 6, 7, 20'000, 40'005, 40'006, 40'007, 40'012, 40'013};
  for (const std::uint64_t begin : places)
    for (const std::uint64_t end : places) {
      if (begin > end) continue;
      std::vector<std::byte> copy;
      const Bytes read = frames.read(begin, end, copy);
      CHECK(std::ranges::equal(read, std::span(expected).subspan(2 * begin, 2 * (end - begin))));
      const auto slice_of = [](std::uint64_t frame) {
        return frame < 5 ? 0 : frame < 6 ? 1 : frame < 40'006 ? 2 : 3;
      };
      CHECK(copy.empty() == (begin == end || slice_of(begin) == slice_of(end - 1)));
    }
}

TEST_CASE("events have their places, and frames that follow each other are one event") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream stream(1);
  stream.add(writer, 5);
  stream.add(writer, 6, true);
  seal(writer);
  const auto recordings = recorded.read();
  const StreamFrames frames(*recordings, recordings->find(1).value());
  REQUIRE(frames.events().size() == 3);
  CHECK(frames.events()[1].event.kind == Kind::frames);
  CHECK(frames.events()[1].event.count == 11);
  CHECK(frames.events()[1].frame == 0);
  CHECK(frames.events()[2].event.kind == Kind::end);
  CHECK(frames.events()[2].position == 11);
  CHECK(frames.over());
  CHECK(frames.totals()->complete);
}

TEST_CASE("a gap moves the position, not the frames") {
  RecordedDirectory recorded;
  TestStream stream(1);
  for (const FileNumber file : {1, 2, 3}) {
    FileWriter writer = recorded.begin(file);
    stream.add(writer, 10, file == 3);
    seal(writer);
  }
  expect(recorded.directory.remove(2));
  const auto recordings = recorded.read();
  const StreamFrames frames(*recordings, recordings->find(1).value());
  REQUIRE(frames.events().size() == 5);
  const RecordedEvent& after = frames.events()[3];
  CHECK(after.event.kind == Kind::frames);
  CHECK(after.position == 20);
  CHECK(after.frame == 10);
  CHECK(frames.frames() == 20);
  CHECK(frames.missing().size() == 1);
}

TEST_CASE("a stream that is being recorded is read on") {
  RecordedDirectory recorded;
  REQUIRE(recorded.directory.lock_for_writing());
  FileWriter writer = recorded.begin(1);
  TestStream stream(1);
  stream.add(writer, 5);
  commit(writer);
  const auto recordings = recorded.read();
  StreamFrames frames(*recordings, recordings->find(1).value());
  std::vector<std::byte> copy;
  const Bytes before = frames.read(0, 5, copy);
  const std::vector<std::byte> values(before.begin(), before.end());
  stream.add(writer, 6, true);
  commit(writer);
  CHECK(recordings->refresh());
  CHECK(frames.read_on());
  CHECK_FALSE(frames.read_on());
  CHECK(frames.frames() == 11);
  CHECK(std::ranges::equal(before, values));
}

}  // namespace
}  // namespace millrace::recording
