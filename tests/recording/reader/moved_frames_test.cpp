// SPDX-License-Identifier: Apache-2.0
// The frames of streams that were lost and opened anew.
#include <cstring>
#include <fstream>
#include <random>

#include "recording/reader/stream_frames.h"
#include "tests/recording/reader/moved_streams.h"

namespace millrace::recordings {
namespace {

using recording::Recordings;
using recording::Repeated;
using recording::StreamFrames;
using recording::StreamParts;
using Kind = Event::Kind;
using Events = std::vector<std::pair<Kind, std::uint64_t>>;

std::vector<std::int16_t> values_of(const StreamFrames& stream) {
  std::vector<std::byte> copy;
  const Bytes bytes = stream.read(0, stream.frames(), copy);
  std::vector<std::int16_t> values(bytes.size() / sizeof(std::int16_t));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Events events_of(const StreamFrames& stream) {
  Events events;
  for (const auto& read : stream.events()) events.emplace_back(read.event.kind, read.event.count);
  return events;
}

// The values of the frames of a stream that was not lost.
std::vector<std::int16_t> uncut_values(const std::vector<Event>& events) {
  std::vector<std::int16_t> values;
  std::uint64_t position = 0;
  for (const Event& event : events) {
    for (std::uint64_t i = 0; event.kind == Kind::frames && i < event.count; ++i)
      values.push_back(static_cast<std::int16_t>(position + i + 1));
    if (event.kind == Kind::frames || event.kind == Kind::gap) position += event.count;
  }
  return values;
}

TEST_CASE("without repeated events a stream that moved has the events of its client once") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 150; ++round) {
    const Spec spec = random_spec(random);
    const Moved moved = random_moves(random, spec);
    INFO("round " << round);
    RecordedDirectory directory;
    for (std::size_t i = 0; i < moved.parts.size(); ++i) {
      TestStream stream = part_of(i + 1, static_cast<std::uint32_t>(i), spec);
      write(directory, stream, moved.parts[i]);
    }
    const auto recordings = std::move(*Recordings::open(directory.path()));
    const StreamParts parts = only_stream(*recordings);
    const StreamFrames once(*recordings, parts, Repeated::left_out);
    CHECK(values_of(once) == uncut_values(moved.uncut));
    const auto commands = [](const auto& events, const auto& event_of) {
      std::vector<Kind> kinds;
      for (const auto& one : events)
        if (const Kind kind = event_of(one).kind; kind != Kind::frames && kind != Kind::open)
          kinds.push_back(kind);
      return kinds;
    };
    CHECK(commands(once.events(), [](const auto& read) { return read.event; }) ==
          commands(moved.uncut, [](const Event& event) { return event; }));
    const StreamFrames kept(*recordings, parts, Repeated::kept);
    std::uint64_t all = 0, single = 0;
    for (const auto& part : kept.parts()) {
      all += part.all;
      single += part.once;
    }
    CHECK(all == kept.frames());
    CHECK(single == once.frames());
  }
}

// A part with the row K - 1 of [4, 8), which needs two frames of right context. Then a part that
// has these frames again.
TEST_CASE("frames that two parts have are read twice or once, each from its part") {
  const Spec spec{.size = 4, .right = 2};
  RecordedDirectory directory;
  TestStream first = part_of(1, 0, spec), second = part_of(2, 1, spec);
  second.added = 100;
  write(directory, first, {open(), frames(14), abort_stream()});
  write(directory, second, {open(8, 2), frames(3), end()});
  const auto recordings = std::move(*Recordings::open(directory.path()));
  const StreamParts parts = only_stream(*recordings);
  const StreamFrames kept(*recordings, parts, Repeated::kept);
  CHECK(values_of(kept) == std::vector<std::int16_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 109, 110, 111});
  CHECK(
      events_of(kept) ==
      Events{
          {Kind::open, 0}, {Kind::frames, 10}, {Kind::open, 8}, {Kind::frames, 3}, {Kind::end, 0}});
  CHECK(kept.events()[2].frame == 10);
  REQUIRE(kept.parts().size() == 2);
  CHECK(kept.parts()[0].all == 10);
  CHECK(kept.parts()[0].once == 8);
  const StreamFrames once(*recordings, parts, Repeated::left_out);
  CHECK(values_of(once) == std::vector<std::int16_t>{1, 2, 3, 4, 5, 6, 7, 8, 109, 110, 111});
  CHECK(once.events()[2].frame == 8);
}

TEST_CASE("a part of which the end was not recorded does not end its stream") {
  const Spec spec{.size = 4};
  RecordedDirectory directory;
  TestStream first = part_of(1, 0, spec), second = part_of(2, 1, spec);
  write(directory, first, {open(), frames(5)});  // killed
  write(directory, second, {open(8, 2), frames(3), end()});
  const auto recordings = std::move(*Recordings::open(directory.path()));
  const StreamFrames stream(*recordings, only_stream(*recordings), Repeated::kept);
  CHECK(
      events_of(stream) ==
      Events{
          {Kind::open, 0}, {Kind::frames, 5}, {Kind::open, 8}, {Kind::frames, 3}, {Kind::end, 0}});
  CHECK(stream.missing().size() == 1);
}

// The end yields the rows 1, of [4, 8), and 2. The client had only the former.
TEST_CASE("an end that the next part has again ends a segment in the part before") {
  const Spec spec{.size = 4};
  RecordedDirectory directory;
  TestStream first = part_of(1, 0, spec), second = part_of(2, 1, spec);
  write(directory, first, {open(), frames(6), frames(4), end()});
  write(directory, second, {open(8, 2), frames(2), end()});
  const auto recordings = std::move(*Recordings::open(directory.path()));
  const StreamParts parts = only_stream(*recordings);
  CHECK(
      events_of(StreamFrames(*recordings, parts, Repeated::left_out)) ==
      Events{
          {Kind::open, 0}, {Kind::frames, 8}, {Kind::open, 8}, {Kind::frames, 2}, {Kind::end, 0}});
}

TEST_CASE("a part whose begin is damaged opens at the position where it was opened") {
  const Spec spec{.size = 4};
  RecordedDirectory directory;
  TestStream first = part_of(1, 0, spec), second = part_of(2, 1, spec);
  write(directory, first, {open(), frames(12), abort_stream()});
  auto writer = directory.file();
  for (const Event& event : {open(8, 2), frames(3)}) second.event(event);
  second.slice(writer);
  REQUIRE(writer.write());  // ends the chunk
  const std::string path = directory / recording::Directory::file_name(2);
  const auto begin_of_second = std::filesystem::file_size(path);
  second.event(frames(5)).event(end());
  second.slice(writer);
  REQUIRE(writer.seal());
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(begin_of_second) - 60);
  file << "damage";
  file.close();
  const auto recordings = std::move(*Recordings::open(directory.path()));
  const StreamFrames stream(*recordings, only_stream(*recordings), Repeated::kept);
  CHECK(events_of(stream) == Events{{Kind::open, 0},
                                    {Kind::frames, 8},
                                    {Kind::open, 8},
                                    {Kind::gap, 3},
                                    {Kind::frames, 5},
                                    {Kind::end, 0}});
  CHECK(stream.events()[4].position == 11);
}

}  // namespace
}  // namespace millrace::recordings
