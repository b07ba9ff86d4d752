// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "base/event.h"
#include "chunker/row.h"
#include "chunker/spec.h"

namespace millrace {

// Short forms of events for the chunker's tests.
inline Event open(std::uint64_t position = 0, std::uint64_t rows = 0) {
  return {.count = position, .rows = rows};
}
inline Event frames(std::uint64_t n) { return {Event::Kind::frames, Cause::client, n, {}}; }
inline Event size(std::uint64_t n) { return {Event::Kind::size, Cause::load, n, {}}; }
inline Event flush(std::optional<std::uint64_t> mark = {}) {
  return {Event::Kind::flush, Cause::client, 0, mark};
}
inline Event reset(Cause cause = Cause::client) { return {Event::Kind::reset, cause, 0, {}}; }
inline Event gap(std::uint64_t n, Cause cause = Cause::client) {
  return {Event::Kind::gap, cause, n, {}};
}
inline Event message() { return {Event::Kind::message, Cause::client, 5, {}}; }
inline Event end() { return {Event::Kind::end, Cause::client, 0, {}}; }
inline Event abort_stream() { return {Event::Kind::abort, Cause::connection, 0, {}}; }

// All rows of a stream. Stops at the END row.
std::vector<Row> rows_of(const Spec& spec, const std::vector<Event>& events);

// Rows as in chunks.json: seq, begin, left, size, right, flags, gap.
using Columns = std::vector<std::vector<std::uint64_t>>;
Columns columns(const std::vector<Row>& rows);

// The rows of tests/support/chunk_reference.h. Stops at the END row.
Columns reference_columns(const Spec& spec, const std::vector<Event>& events);

// Position and row of each message, by tests/support/chunk_reference.h, and by the chunker.
Columns reference_messages(const Spec& spec, const std::vector<Event>& events);
Columns messages_of(const Spec& spec, const std::vector<Event>& events);

// A chunk rule, and the events of a stream that it cuts.
struct Case {
  ChunkRule rule;
  std::vector<Event> events;
};

// Small numbers, so that borders meet often. Some streams are opened anew. Ends with end, abort or,
// rarely, without either.
Case random_case(std::mt19937_64& random);

// The forms of conformance/chunks.json.
boost::json::value conformance(const char* file);
Spec spec_from(const boost::json::value& json);
std::vector<Event> events_from(const boost::json::value& json);
boost::json::object to_json(const Spec& spec);
boost::json::array to_json(const std::vector<Event>& events);

}  // namespace millrace
