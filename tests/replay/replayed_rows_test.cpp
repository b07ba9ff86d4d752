// SPDX-License-Identifier: Apache-2.0
#include "replay/rows/replayed_rows.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>
#include <random>
#include <string>
#include <utility>

#include "chunker/chunker.h"
#include "tests/replay/given_stream.h"

using namespace millrace;
using namespace std::chrono_literals;
using Kind = Event::Kind;

namespace {

// A row, the bytes of its window, and the messages that it carries.
struct Cut {
  Row row;
  std::vector<std::byte> window;
  StreamPosts messages{};
  bool operator==(const Cut&) const = default;
};

std::vector<std::byte> joined(const std::array<Bytes, 2>& parts) {
  std::vector<std::byte> bytes(parts[0].begin(), parts[0].end());
  bytes.insert(bytes.end(), parts[1].begin(), parts[1].end());
  return bytes;
}

// The text of the event with this number: of a message a number, of a `set` an object.
std::string text_at(std::size_t number, Kind kind) {
  const std::string text = std::to_string(number);
  return kind == Kind::set ? "{\"n\":" + text + "}" : text;
}

// The rows of the events, cut in one go.
std::vector<Cut> cut(const ChunkRule& rule, const std::vector<Event>& events,
                     const std::vector<std::byte>& values) {
  std::vector<Cut> rows;
  Chunker chunker(rule.chunker_spec());
  StreamPosts messages;
  std::uint64_t skipped = events.front().count, position = skipped;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    chunker.add(event);
    if (event.has_text())
      messages.push_back({position, text_at(i, event.kind), event.kind == Kind::set});
    if (event.kind == Kind::frames || event.kind == Kind::gap) position += event.count;
    while (const auto row = chunker.next()) {
      Cut one{.row = *row, .window = {}, .messages = std::exchange(messages, {})};
      if (row->has_frames()) {
        const auto begin = values.begin() + static_cast<long>(2 * (row->window_begin() - skipped));
        one.window.assign(begin, begin + 2 * row->window());
      }
      rows.push_back(std::move(one));
    }
    if (event.kind == Kind::gap) skipped += event.count;
  }
  return rows;
}

std::vector<Event> random_events(std::mt19937& random, const ChunkRule& rule) {
  std::vector<Event> events{{}};
  if (random() % 3 == 0) events.front() = {.count = random() % 1000, .rows = random() % 100};
  const bool sizes = rule.spec.step == 0 && rule.spec.first == 0;
  const auto add_text = [&](Kind kind) {
    events.push_back({.kind = kind, .count = text_at(events.size(), kind).size()});
  };
  for (int i = 0; i < 60; ++i) switch (random() % 14) {
      case 0: events.push_back({.kind = Kind::flush, .mark = random() % 9}); break;
      case 1: events.push_back({.kind = Kind::flush, .cause = Cause::endpoint}); break;
      case 2: events.push_back({.kind = Kind::reset}); break;
      case 3: events.push_back({.kind = Kind::gap, .cause = Cause::load, .count = 5}); break;
      case 4:
        if (sizes) events.push_back({.kind = Kind::size, .count = 1 + random() % rule.spec.size});
        break;
      case 5: add_text(Kind::message); break;
      case 6: add_text(Kind::set); break;
      default: events.push_back({.kind = Kind::frames, .count = 1 + random() % 13});
    }
  events.push_back({.kind = random() % 2 == 0 ? Kind::end : Kind::abort});
  return events;
}

// Takes all rows; a worker has at most `held` of them at a time.
std::vector<Cut> replay(ReplayedRows& rows, std::size_t held) {
  std::vector<Cut> all;
  std::deque<ReadyRow> outstanding;
  const auto finish = [&] {
    // The window is read when the row is done: it must still be in place.
    const ReadyRow& row = outstanding.front();
    all.push_back({row.row, joined(row.window), row.posts ? *row.posts : StreamPosts()});
    CHECK(rows.done(row.row.seq) == row.row);
    outstanding.pop_front();
  };
  for (;;) {
    while (auto row = rows.next({})) outstanding.push_back(std::move(*row));
    if (outstanding.empty()) return all;
    CHECK(outstanding.size() <= held + max_ready_rows);
    rows.batched(outstanding[std::min(held, outstanding.size()) - 1].row.seq);
    finish();
  }
}

CutSettings settings(const ChunkRule& rule) { return {.frames = {}, .rule = rule}; }

}  // namespace

TEST_CASE("a replay gives the rows, the windows and the messages of the recorded events") {
  std::mt19937 random(GENERATE(range(0u, 60u)));
  const ChunkRule rules[] = {
      {.spec = {.size = 10}},
      {.spec = {.size = 10, .left = 12, .right = 7}},
      {.spec = {.size = 10, .step = 4, .left = 3, .tail = Spec::Tail::cover}},
      {.spec = {.size = 6, .step = 9}},
      {.spec = {.size = 8, .first = 11, .right = 2, .min = 3}},
  };
  const ChunkRule& rule = rules[random() % std::size(rules)];
  const auto events = random_events(random, rule);
  GivenStream given;
  for (std::size_t i = 0; i < events.size(); ++i)
    given.add(events[i], {}, events[i].has_text() ? text_at(i, events[i].kind) : "");
  ReplayedRows rows(given.reader(), settings(rule), {}, nullptr);
  CHECK(replay(rows, 1 + random() % 5) == cut(rule, events, given.values()));
  CHECK(rows.ended());
}

TEST_CASE("a window in one or two slices is not copied") {
  GivenStream given;
  given.add(Event{});
  for (int i = 0; i < 6; ++i) given.add(Event{.kind = Kind::frames, .count = 10});
  given.add(Event{.kind = Kind::end});
  ReplayedRows rows(given.reader(), settings({.spec = {.size = 20}}), {}, nullptr);
  const auto row = rows.next({});
  REQUIRE(row);
  CHECK(row->window[0].size() == 20);
  CHECK(row->window[1].size() == 20);
}

TEST_CASE("an aborted stream keeps its last row back until a worker had a row") {
  GivenStream given;
  given.add(Event{});
  given.add(Event{.kind = Kind::frames, .count = 10});
  given.add(Event{.kind = Kind::abort});
  ReplayedRows rows(given.reader(), settings({.spec = {.size = 10}}), {}, nullptr);
  CHECK(rows.next({}));
  CHECK_FALSE(rows.next({}));
  rows.batched(0);
  CHECK(rows.next({})->row.is(flag::abort));
}

TEST_CASE("events are due at their recorded times, at a speed") {
  const Time opened{100s}, begun{7s};
  GivenStream given;
  given.add(Event{}, opened);
  for (int i = 1; i <= 3; ++i) given.add(Event{.kind = Kind::frames, .count = 10}, opened + i * 1s);
  given.add(Event{.kind = Kind::end}, opened + 3s);
  ReplayedRows rows(given.reader(), settings({.spec = {.size = 10}}),
                    {.speed = 4, .opened = opened, .begun = begun}, nullptr);
  for (int i = 1; i <= 3; ++i) {
    const Time due = begun + i * 250ms;
    CHECK_FALSE(rows.next(due - 1ns));
    CHECK(rows.due() == due);
    CHECK(rows.next(due));
  }
  CHECK(rows.next(begun + 750ms)->row.is(flag::end));
}

TEST_CASE("a clock that was set back in a recording does not change the order") {
  const Time opened{100s};
  GivenStream given;
  given.add(Event{}, opened);
  given.add(Event{.kind = Kind::frames, .count = 10}, opened + 2s);
  given.add(Event{.kind = Kind::frames, .count = 10}, opened + 1s);
  ReplayedRows rows(given.reader(), settings({.spec = {.size = 10}}),
                    {.speed = 1, .opened = opened}, nullptr);
  CHECK_FALSE(rows.next(Time{1s}));
  CHECK(rows.due() == Time{2s});
  CHECK(rows.next(Time{2s}));
  CHECK(rows.next(Time{2s}));
}

TEST_CASE("another rule leaves out the decisions of the recorded one") {
  GivenStream given;
  const ChunkRule other{.spec = {.size = 8}};
  std::vector<Event> kept;
  for (const Event& event :
       std::vector<Event>{{},
                          {.kind = Kind::size, .cause = Cause::load, .count = 5},
                          {.kind = Kind::frames, .count = 20},
                          {.kind = Kind::flush, .cause = Cause::endpoint},
                          {.kind = Kind::frames, .count = 20},
                          {.kind = Kind::reset, .cause = Cause::endpoint},
                          {.kind = Kind::flush, .mark = 3},
                          {.kind = Kind::frames, .count = 9},
                          {.kind = Kind::reset},
                          {.kind = Kind::gap, .cause = Cause::load, .count = 4},
                          {.kind = Kind::frames, .count = 9},
                          {.kind = Kind::end}}) {
    given.add(event);
    if (event.kind != Kind::size && event.cause != Cause::endpoint) kept.push_back(event);
  }
  CutSettings of = settings(other);
  of.other_rule = true;
  ReplayedRows rows(given.reader(), of, {}, nullptr);
  CHECK(replay(rows, 3) == cut(other, kept, given.values()));
}

TEST_CASE("another rule may draw sizes from the name") {
  ChunkRule drawn{.spec = {.size = 4}};
  drawn.sizes = {.by = SizeRule::By::random,
                 .sizes = SizeList(std::vector<std::uint32_t>{4, 6, 8}),
                 .seed = 5};
  GivenStream given;
  given.add(Event{});
  given.add(Event{.kind = Kind::frames, .count = 100});
  given.add(Event{.kind = Kind::end});
  CutSettings of = settings(drawn);
  of.other_rule = true;
  of.name = "call";
  ReplayedRows rows(given.reader(), of, {}, nullptr);
  const auto cuts = replay(rows, 2);
  for (std::size_t i = 0; i + 2 < cuts.size(); ++i)
    CHECK(cuts[i].row.size == drawn_size(drawn.sizes, "call", i));
}

TEST_CASE("rows are compared with the recorded digest") {
  const bool same = GENERATE(true, false);
  const ChunkRule rule{.spec = {.size = 10}};
  const std::vector<Event> events{{}, {.kind = Kind::frames, .count = 1000}, {.kind = Kind::end}};
  GivenStream given;
  recording::RowDigest digest;
  for (const Event& event : events) given.add(event);
  for (const Cut& one : cut(rule, events, given.values())) digest.add(one.row);
  given.add(recording::StreamTotals{
      .rows = digest.rows(), .digest = digest.value() + (same ? 0 : 1), .complete = true});
  ReplayedRows rows(given.reader(), settings(rule), {}, nullptr);
  (void)replay(rows, 2);
  rows.read_rest();
  CHECK(rows.differs_from_live() != same);
}

TEST_CASE("answers are compared up to those that are missing") {
  AnswerComparison comparison;
  GivenStream given;
  given.add(Event{});
  given.add({.kind = Kind::frames, .count = 20});
  given.add(recording::RecordedAnswer{.seq = 0, .kind = Answer::Kind::json, .data = "1"});
  given.lose_answers();
  given.add({.kind = Kind::end});
  ReplayedRows rows(given.reader(), settings({.spec = {.size = 10}}), {}, &comparison);
  for (const Cut& one : replay(rows, 2))
    comparison.replayed(one.row, {Answer::Kind::json, "1", false});
  rows.read_rest();
  comparison.replayed_all();
  CHECK(comparison.is_cut());
  CHECK_FALSE(comparison.difference());
}

TEST_CASE("a size that the rule does not allow ends the stream with a reason") {
  // One that no row holds, or one that is not among the sizes.
  ChunkRule rule{.spec = {.size = 10}};
  const std::uint64_t size = GENERATE(11, 8);
  if (size == 8) rule.sizes.sizes = SizeList({6, 10});
  GivenStream given;
  given.add(Event{});
  given.add(Event{.kind = Kind::frames, .count = 10});
  given.add(Event{.kind = Kind::size, .count = size});
  given.add(Event{.kind = Kind::frames, .count = 10});
  ReplayedRows rows(given.reader(), settings(rule), {}, nullptr);
  const auto cuts = replay(rows, 1);
  REQUIRE(cuts.size() == 2);
  CHECK(cuts[1].row.is(flag::abort));
  CHECK(rows.problem().find(std::to_string(size) + " frames") != std::string::npos);
}

TEST_CASE("a stream that is still being recorded ends with an abort") {
  GivenStream given;
  given.add(Event{});
  given.add(Event{.kind = Kind::frames, .count = 15});
  ReplayedRows rows(given.reader(), settings({.spec = {.size = 10}}), {}, nullptr);
  CHECK(replay(rows, 1).back().row.is(flag::abort));
}
