// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/joined_reader.h"

#include <map>
#include <random>

#include "tests/recording/reader/moved_streams.h"

namespace millrace::recordings {
namespace {

using recording::join_parts;
using recording::JoinedReader;
using recording::RecordedAnswer;
using recording::RecordedEvent;
using recording::Recordings;
using recording::StreamParts;
using Kind = Event::Kind;

// The frames of a stream by position.
using Frames = std::map<std::uint64_t, std::int16_t>;

// All that a JoinedReader returns.
struct Joined {
  std::vector<Row> rows{};
  Frames frames{};
  std::size_t texts = 0;
  std::vector<std::uint64_t> answers{};
  std::vector<std::uint64_t> parts{};  // their numbers
};

void add(const RecordedEvent& read, const JoinedReader& reader, Joined& to,
         std::optional<Chunker>& chunker) {
  const Event& event = read.event;
  if (event.kind == Kind::open) {
    const auto& meta = reader.part().meta;
    to.parts.push_back(meta.number);
    chunker.emplace(rule_from_json(meta.rule, {})->chunker_spec());
  }
  REQUIRE(chunker);
  REQUIRE((event.kind != Kind::frames || read.frames.size() == 2 * event.count));
  for (std::uint64_t i = 0; event.kind == Kind::frames && i < event.count; ++i) {
    if (read.position + i >= reader.counts_until()) break;
    std::int16_t value = 0;
    std::memcpy(&value, read.frames.data() + 2 * i, sizeof value);
    REQUIRE(to.frames.emplace(read.position + i, value).second);
  }
  to.texts += event.has_text();
  chunker->add(event);
  while (const auto row = chunker->next())
    if (row->seq < reader.rows_until()) to.rows.push_back(*row);
}

Joined read(Recordings& recordings, const StreamParts& parts) {
  Joined joined;
  std::optional<Chunker> chunker;
  JoinedReader reader(recordings, parts);
  while (const auto item = reader.next()) {
    if (const auto* event = std::get_if<RecordedEvent>(&*item))
      add(*event, reader, joined, chunker);
    if (const auto* answer = std::get_if<RecordedAnswer>(&*item))
      joined.answers.push_back(answer->seq);
  }
  CHECK(reader.over());
  CHECK(reader.missing().empty());
  return joined;
}

Frames frames_of(const std::vector<Event>& events) {
  Frames all;
  std::uint64_t position = 0;
  for (const Event& event : events) {
    for (std::uint64_t i = 0; event.kind == Kind::frames && i < event.count; ++i)
      all[position + i] = static_cast<std::int16_t>(position + i + 1);
    if (event.kind == Kind::frames || event.kind == Kind::gap) position += event.count;
  }
  return all;
}

}  // namespace

TEST_CASE("a stream that was opened anew has the rows of its parts and the frames of the stream") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 150; ++round) {
    const Spec spec = random_spec(random);
    const Moved moved = random_moves(random, spec);
    INFO("round " << round << ", size " << spec.size << ", right " << spec.right);
    RecordedDirectory directory;
    std::vector<Row> expected;
    for (std::size_t i = 0; i < moved.parts.size(); ++i) {
      TestStream stream = part_of(i + 1, static_cast<std::uint32_t>(2 * i), spec);
      write(directory, stream, moved.parts[i]);
      const bool is_last = i + 1 == moved.parts.size();
      for (const Resumable& one : cut(spec, moved.parts[i]))
        if (is_last || one.row.seq < moved.rows[i + 1]) expected.push_back(one.row);
    }
    const auto recordings = std::move(*Recordings::open(directory.path()));
    const Joined joined = read(*recordings, only_stream(*recordings));
    CHECK(joined.rows == expected);
    CHECK(joined.frames == frames_of(moved.uncut));
  }
}

TEST_CASE("the epoch orders parts, and parts that have no row left are left out") {
  RecordedDirectory directory;
  const Spec spec{.size = 4};
  TestStream last = part_of(1, 7, spec), first = part_of(2, 0, spec), between = part_of(3, 4, spec);
  write(directory, last, {open(4, 1), frames(8), end()});
  write(directory, first, {open(), frames(20), abort_stream()});
  write(directory, between, {open(8, 2), frames(4), abort_stream()});
  const auto recordings = std::move(*Recordings::open(directory.path()));
  const Joined joined = read(*recordings, only_stream(*recordings));
  CHECK(joined.parts == std::vector<std::uint64_t>{2, 1});
  CHECK(joined.rows.size() == 4);
  CHECK(joined.frames.size() == 12);
}

TEST_CASE("a part whose rule is invalid counts up to the position of the next part") {
  RecordedDirectory directory;
  const Spec spec{.size = 4};
  TestStream first = part_of(1, 0, spec), second = part_of(2, 1, spec);
  first.meta.rule = R"({"size":-1})";
  write(directory, first, {open(), frames(6), flush(), frames(4), abort_stream()});
  write(directory, second, {open(8, 3), frames(6), end()});
  const auto recordings = std::move(*Recordings::open(directory.path()));
  JoinedReader reader(*recordings, only_stream(*recordings));
  std::vector<std::pair<Kind, std::uint64_t>> events;
  while (const auto item = reader.next())
    if (const auto* read = std::get_if<RecordedEvent>(&*item))
      events.emplace_back(read->event.kind, read->event.count);
  CHECK(events == std::vector<std::pair<Kind, std::uint64_t>>{{Kind::open, 0},
                                                              {Kind::frames, 6},
                                                              {Kind::flush, 0},
                                                              {Kind::frames, 2},
                                                              {Kind::open, 8},
                                                              {Kind::frames, 6},
                                                              {Kind::end, 0}});
}

TEST_CASE("answers to rows that a later part has again are left out") {
  RecordedDirectory directory;
  const Spec spec{.size = 4};
  TestStream first = part_of(1, 0, spec), second = part_of(2, 1, spec);
  for (const std::uint64_t seq : {0, 1, 2}) first.answer(seq, "1");
  for (const std::uint64_t seq : {2, 3}) second.answer(seq, "2");
  write(directory, first, {open(), frames(14), abort_stream()});
  write(directory, second, {open(8, 2), message(), frames(6), end()});
  const auto recordings = std::move(*Recordings::open(directory.path()));
  const Joined joined = read(*recordings, only_stream(*recordings));
  CHECK(joined.answers == std::vector<std::uint64_t>{0, 1, 2, 3});
  CHECK(joined.texts == 1);
}

TEST_CASE("only parts with the same key and type are one stream, and a name may be used again") {
  RecordedDirectory directory;
  const Spec spec{.size = 4};
  TestStream one = part_of(1, 0, spec), two = part_of(2, 0, spec, 9), anew = part_of(3, 1, spec),
             other = part_of(4, 2, spec), plain(5, "call");
  other.meta.frames.rate = 8000;
  for (TestStream* stream : {&one, &two, &anew, &other, &plain})
    write(directory, *stream, {open(), frames(4), end()});
  const auto recordings = std::move(*Recordings::open(directory.path()));
  std::vector<std::vector<std::uint64_t>> numbers;
  for (const StreamParts& parts : join_parts(recordings->streams())) {
    auto& of_stream = numbers.emplace_back();
    for (const auto& part : parts) of_stream.push_back(part.meta.number);
  }
  CHECK(numbers == std::vector<std::vector<std::uint64_t>>{{1, 3}, {2}, {4}, {5}});
}

}  // namespace millrace::recordings
