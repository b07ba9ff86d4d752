// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "recording/reader/stream_parts.h"
#include "tests/chunker/resumed_events.h"
#include "tests/commands/recorded/recorded_directory.h"

namespace millrace::recordings {

inline std::uint64_t at_most(std::mt19937_64& random, std::uint64_t most) {
  return random() % (most + 1);
}

inline Spec random_spec(std::mt19937_64& random) {
  Spec spec{.size = static_cast<std::uint32_t>(1 + at_most(random, 7))};
  spec.left = static_cast<std::uint32_t>(at_most(random, 5));
  spec.right = static_cast<std::uint32_t>(at_most(random, 5));
  if (at_most(random, 3) == 0) spec.step = static_cast<std::uint32_t>(1 + at_most(random, 8));
  return spec;
}

// With `size` events of these sizes, if there are any.
inline std::vector<Event> random_events(std::mt19937_64& random,
                                        const std::vector<std::uint32_t>& sizes = {}) {
  using Kind = Event::Kind;
  std::vector<Event> events{open()};
  for (std::uint64_t n = 3 + at_most(random, 12); n > 0; --n) {
    const std::uint64_t kind = at_most(random, 9);
    if (kind < 6) events.push_back(frames(1 + at_most(random, 12)));
    if (kind == 6) events.push_back(flush());
    if (kind == 7) events.push_back(reset());
    if (kind == 8) events.push_back(gap(1 + at_most(random, 5)));
    if (kind == 9) events.push_back(message());
    if (!sizes.empty() && at_most(random, 2) == 0)
      events.push_back({.kind = Kind::size,
                        .cause = Cause::load,
                        .count = sizes[at_most(random, sizes.size() - 1)]});
  }
  events.push_back(end());
  return events;
}

// A stream that was opened anew at random rows, some times: the events that each service had.
struct Moved {
  std::vector<Event> uncut;
  std::vector<std::vector<Event>> parts{};
  std::vector<std::uint64_t> rows{};  // at which the parts begin

  // True for a row of a part that no later part has again.
  bool counts(std::size_t part, const Row& row) const {
    return part + 1 == parts.size() || row.seq < rows[part + 1];
  }
};

inline Moved moved(std::mt19937_64& random, const Spec& spec, std::vector<Event> events,
                   std::uint64_t most_moves) {
  Moved moved{.uncut = events};
  moved.rows.push_back(0);
  for (std::uint64_t moves = at_most(random, most_moves); moves > 0; --moves) {
    const auto rows = cut(spec, events);
    const Resumable& last = rows[at_most(random, rows.size() - 1)];
    if (last.row.is(flag::end)) continue;
    const std::uint64_t more = at_most(random, events.size() - last.event - 1);
    std::vector<Event> part(events.begin(),
                            events.begin() + static_cast<std::ptrdiff_t>(last.event + 1 + more));
    if (part.back().kind != Event::Kind::end) part.push_back(abort_stream());
    moved.parts.push_back(std::move(part));
    moved.rows.push_back(last.row.seq + 1);
    events = events_after(last, events);
  }
  moved.parts.push_back(events);
  return moved;
}

inline Moved random_moves(std::mt19937_64& random, const Spec& spec) {
  return moved(random, spec, random_events(random), 3);
}

// A recording of a stream that may survive its connection.
inline TestStream part_of(std::uint64_t number, std::uint32_t epoch, const ChunkRule& rule,
                          std::uint8_t key = 1) {
  TestStream stream(number, "call");
  stream.meta.rule = to_json(rule);
  stream.meta.resumable = recording::ResumableKey{.epoch = epoch};
  stream.meta.resumable->stream.bytes[0] = key;
  return stream;
}
inline TestStream part_of(std::uint64_t number, std::uint32_t epoch, const Spec& spec,
                          std::uint8_t key = 1) {
  return part_of(number, epoch, ChunkRule{.spec = spec}, key);
}

// Writes a recording to a file of its own.
inline void write(RecordedDirectory& to, TestStream& stream, const std::vector<Event>& events) {
  auto file = to.file();
  for (const Event& event : events)
    stream.event(event, event.has_text() ? std::string_view("[\"a\"]") : std::string_view());
  stream.slice(file);
  REQUIRE(file.seal());
}

inline recording::StreamParts only_stream(recording::Recordings& recordings) {
  auto joined = recording::join_parts(recordings.streams());
  REQUIRE(joined.size() == 1);
  return joined.front();
}

}  // namespace millrace::recordings
