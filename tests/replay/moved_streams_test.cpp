// SPDX-License-Identifier: Apache-2.0
// Streams that were lost and opened anew.
#include <algorithm>
#include <cstring>
#include <random>

#include "replay/rows/replayed_rows.h"
#include "replay/rows/unbroken.h"
#include "tests/recording/reader/moved_streams.h"

namespace millrace {
namespace {

using recording::JoinedReader;
using recording::Recordings;
using recordings::Moved;
using recordings::RecordedDirectory;
using recordings::TestStream;
using Kind = Event::Kind;
using Values = std::vector<std::int16_t>;

constexpr std::uint64_t part_values = 1000;  // the values of the next part are larger by this

struct WindowRow {
  Row row;
  Values window{};
  bool operator==(const WindowRow&) const = default;
};

void record(RecordedDirectory& directory, const Spec& spec, const Moved& moved) {
  for (std::size_t i = 0; i < moved.parts.size(); ++i) {
    TestStream stream = recordings::part_of(i + 1, static_cast<std::uint32_t>(i), spec);
    stream.added = i * part_values;
    stream.meta.opened_steady = static_cast<std::int64_t>(9 - i) * 1'000'000'000;
    recordings::write(directory, stream, moved.parts[i]);
  }
}

Values values_of(const ReadyRow& row) {
  Values values;
  for (const Bytes& part : row.window) {
    const std::size_t before = values.size();
    values.resize(before + part.size() / 2);
    if (!part.empty()) std::memcpy(values.data() + before, part.data(), part.size());
  }
  return values;
}

std::vector<WindowRow> replayed(JoinedReader& reader, const CutSettings& settings) {
  ReplayedRows rows(reader, settings, {}, nullptr);
  std::vector<WindowRow> all;
  for (;;) {
    const auto row = rows.next(Time{});
    if (row) {
      all.push_back({row->row, values_of(*row)});
      rows.batched(row->row.seq);
      rows.done(row->row.seq);
    } else if (rows.ended()) {
      return all;
    }
  }
}

// The rows that the clients received, each with the frames of its service.
std::vector<WindowRow> served_rows(const Spec& spec, const Moved& moved) {
  std::vector<WindowRow> served;
  for (std::size_t i = 0; i < moved.parts.size(); ++i)
    for (const Resumable& one : cut(spec, moved.parts[i])) {
      if (!moved.counts(i, one.row)) continue;
      WindowRow& row = served.emplace_back(WindowRow{one.row});
      for (std::uint32_t k = 0; one.row.has_frames() && k < one.row.window(); ++k)
        row.window.push_back(
            static_cast<std::int16_t>(one.row.window_begin() + k + 1 + i * part_values));
    }
  return served;
}

// The events without messages, and with frames that follow each other as one.
std::vector<std::pair<Kind, std::uint64_t>> commands_of(const std::vector<Event>& events) {
  std::vector<std::pair<Kind, std::uint64_t>> commands;
  for (const Event& event : events) {
    if (event.kind == Kind::message) continue;
    if (event.kind == Kind::frames && commands.back().first == Kind::frames)
      commands.back().second += event.count;
    else
      commands.emplace_back(event.kind, event.count);
  }
  return commands;
}

std::vector<Event> unbroken_events(Recordings& recordings) {
  JoinedReader reader(recordings, recordings::only_stream(recordings));
  Unbroken unbroken;
  std::vector<Event> events;
  while (auto item = reader.next())
    if (auto* read = std::get_if<recording::RecordedEvent>(&*item);
        read && unbroken.take(*read, reader))
      events.push_back(read->event);
  return events;
}

}  // namespace

TEST_CASE("workers get the rows that the services gave to a stream that moved", "[property]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 150; ++round) {
    const Spec spec = recordings::random_spec(random);
    const Moved moved = recordings::random_moves(random, spec);
    INFO("round " << round << ", size " << spec.size << ", step " << spec.step);
    RecordedDirectory directory;
    record(directory, spec, moved);
    const auto recordings = std::move(*Recordings::open(directory.path()));
    JoinedReader reader(*recordings, recordings::only_stream(*recordings));
    CHECK(replayed(reader, {.frames = {}, .rule = {.spec = spec}}) == served_rows(spec, moved));
  }
}

TEST_CASE("another rule cuts a stream that moved as if it had not", "[property]") {
  std::mt19937_64 random(8);
  for (int round = 0; round < 150; ++round) {
    const Spec spec = recordings::random_spec(random), other = recordings::random_spec(random);
    const Moved moved = recordings::random_moves(random, spec);
    INFO("round " << round);
    RecordedDirectory directory;
    record(directory, spec, moved);
    const auto recordings = std::move(*Recordings::open(directory.path()));
    JoinedReader reader(*recordings, recordings::only_stream(*recordings));
    std::vector<Row> rows, expected;
    for (const WindowRow& one :
         replayed(reader, {.frames = {}, .rule = {.spec = other}, .other_rule = true}))
      rows.push_back(one.row);
    for (const Resumable& one : cut(other, moved.uncut)) expected.push_back(one.row);
    CHECK(rows == expected);
  }
}

TEST_CASE("a service gets each event of a client once, although its stream moved", "[property]") {
  std::mt19937_64 random(9);
  for (int round = 0; round < 150; ++round) {
    const Spec spec = recordings::random_spec(random);
    const Moved moved = recordings::random_moves(random, spec);
    INFO("round " << round);
    RecordedDirectory directory;
    record(directory, spec, moved);
    const auto recordings = std::move(*Recordings::open(directory.path()));
    const auto events = unbroken_events(*recordings);
    CHECK(commands_of(events) == commands_of(moved.uncut));
    const auto is_message = [](const Event& event) { return event.kind == Kind::message; };
    CHECK(std::ranges::count_if(events, is_message) ==
          std::ranges::count_if(moved.uncut, is_message));
  }
}

TEST_CASE("frames that are missing where a stream moved are a gap") {
  RecordedDirectory directory;
  const Spec spec{.size = 4};
  record(directory, spec,
         {.uncut = {}, .parts = {{open(), frames(5)}, {open(8, 2), frames(3), end()}}});
  const auto recordings = std::move(*Recordings::open(directory.path()));
  CHECK(commands_of(unbroken_events(*recordings)) ==
        std::vector<std::pair<Kind, std::uint64_t>>{
            {Kind::open, 0}, {Kind::frames, 5}, {Kind::gap, 3}, {Kind::frames, 3}, {Kind::end, 0}});
}

TEST_CASE("the events of a stream that moved are due by the wall clock from part to part") {
  RecordedDirectory directory;
  const Spec spec{.size = 4};
  TestStream first = recordings::part_of(1, 0, spec), second = recordings::part_of(2, 1, spec);
  second.meta.opened_steady = 500;
  second.meta.opened_wall = first.meta.opened_wall + 30'000'000'000;
  recordings::write(directory, first, {open(), frames(8), abort_stream()});
  recordings::write(directory, second, {open(8, 2), frames(4), end()});
  const auto recordings = std::move(*Recordings::open(directory.path()));
  JoinedReader reader(*recordings, recordings::only_stream(*recordings));
  const Pace pace{.speed = 1, .opened = from_wire(reader.opened_steady()), .begun = Time{}};
  ReplayedRows rows(reader, {.frames = {}, .rule = {.spec = spec}}, pace, nullptr);
  REQUIRE_FALSE(rows.next(Time{}));
  CHECK(rows.due() == Time{} + std::chrono::milliseconds(250));
  REQUIRE(rows.next(rows.due()));
  REQUIRE(rows.next(rows.due()));
  REQUIRE_FALSE(rows.next(Time{} + std::chrono::seconds(30)));
  CHECK(rows.due() == Time{} + std::chrono::milliseconds(30'250));
}

TEST_CASE("the digest of the last part is compared with its rows") {
  for (const std::uint32_t wrong : {0u, 1u}) {
    RecordedDirectory directory;
    TestStream first = recordings::part_of(1, 0, TestStream::rule()),
               second = recordings::part_of(2, 1, TestStream::rule());
    second.wrong_digest = wrong;
    recordings::write(directory, first, {open(), frames(11), abort_stream()});
    recordings::write(directory, second, {open(8, 2), frames(7), end()});
    const auto recordings = std::move(*Recordings::open(directory.path()));
    JoinedReader reader(*recordings, recordings::only_stream(*recordings));
    ReplayedRows rows(reader, {.frames = {}, .rule = TestStream::rule()}, {}, nullptr);
    while (const auto row = rows.next(Time{})) {
      rows.batched(row->row.seq);
      rows.done(row->row.seq);
    }
    REQUIRE(rows.ended());
    rows.read_rest();
    CHECK(rows.differs_from_live() == (wrong != 0));
  }
}

}  // namespace millrace
