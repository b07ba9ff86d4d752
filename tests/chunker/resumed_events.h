// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "chunker/chunker.h"
#include "tests/chunker/events.h"

namespace millrace {

// A row, and where a stream that is opened anew after it continues.
struct Resumable {
  Row row;
  std::uint64_t position = 0;
  std::size_t event = 0;  // the row's event
};

inline std::vector<Resumable> cut(const Spec& spec, const std::vector<Event>& events) {
  Chunker chunker(spec);
  std::vector<Resumable> rows;
  for (std::size_t i = 0; i < events.size(); ++i) {
    chunker.add(events[i]);
    while (const auto row = chunker.next()) rows.push_back({*row, chunker.resume_position(), i});
  }
  return rows;
}

// The events of the stream that is opened anew after this row: the size in force, the frames from
// its position on, and all events that have not had their effect.
inline std::vector<Event> events_after(const Resumable& row, const std::vector<Event>& events) {
  std::vector<Event> rest{open(row.position, row.row.seq + 1)};
  std::uint64_t received = events.front().kind == Event::Kind::open ? events.front().count : 0;
  std::optional<Event> size;
  for (std::size_t i = 0; i <= row.event; ++i) {
    const bool is_closed = i < row.event || row.row.is(flag::last);
    const bool moves =
        events[i].kind == Event::Kind::frames || (events[i].kind == Event::Kind::gap && is_closed);
    if (moves) received += events[i].count;
    if (events[i].kind == Event::Kind::size) size = events[i];
  }
  if (size) rest.push_back(*size);
  REQUIRE(row.position <= received);
  rest.push_back(frames(received - row.position));
  const Event::Kind kind = events[row.event].kind;
  const bool is_due =
      kind != Event::Kind::frames && kind != Event::Kind::size && !row.row.is(flag::last);
  const auto from = events.begin() + static_cast<std::ptrdiff_t>(row.event);
  rest.insert(rest.end(), is_due ? from : from + 1, events.end());
  return rest;
}

}  // namespace millrace
