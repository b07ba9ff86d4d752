// SPDX-License-Identifier: Apache-2.0
#include "tests/chunker/events.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>

#include "chunker/chunker.h"
#include "tests/support/chunk_reference.h"

namespace millrace {
namespace {

namespace json = boost::json;

constexpr std::array kinds{"open", "frames", "size",  "flush",   "reset",
                           "gap",  "end",    "abort", "message", "set"};
constexpr std::array tails{"every_start", "cover", "drop"};

std::uint32_t at_most(std::mt19937_64& random, std::uint32_t most) {
  return static_cast<std::uint32_t>(random() % (most + 1));
}

// A rule in which check() finds no error.
ChunkRule random_rule(std::mt19937_64& random) {
  ChunkRule rule;
  Spec& spec = rule.spec;
  do {
    spec.size = 1 + at_most(random, 7);
    spec.step = random() % 2 ? at_most(random, 9) : 0;
    spec.first = random() % 2 ? at_most(random, 9) : 0;
    spec.left = random() % 2 ? at_most(random, 9) : 0;
    spec.right = random() % 2 ? at_most(random, 6) : 0;
    spec.min = random() % 2 ? at_most(random, 5) : 0;
    spec.tail = static_cast<Spec::Tail>(random() % 3);
  } while (!spec.check());
  rule.align = static_cast<Align>(random() % 2);
  rule.pad = static_cast<Pad>(random() % 2);
  return rule;
}

Event random_event(std::mt19937_64& random, const Spec& spec) {
  const auto kind = random() % 12;
  const Cause cause = static_cast<Cause>(random() % 6);
  if (kind < 6) return frames(at_most(random, 20));
  if (kind < 8 && spec.step == 0) return size(1 + at_most(random, 9));
  if (kind < 9) return flush(random());
  if (kind < 10) return reset(cause);
  if (kind < 11) return gap(1 + at_most(random, 9), cause);
  return frames(at_most(random, 60));
}

}  // namespace

std::vector<Row> rows_of(const Spec& spec, const std::vector<Event>& events) {
  Chunker chunker(spec);
  std::vector<Row> rows;
  for (const Event& event : events) {
    if (chunker.ended()) break;
    chunker.add(event);
    while (const auto row = chunker.next()) rows.push_back(*row);
  }
  return rows;
}

Columns columns(const std::vector<Row>& rows) {
  Columns all;
  for (const Row& row : rows)
    all.push_back({row.seq, row.begin, row.left, row.size, row.right, row.flags, row.gap});
  return all;
}

Columns reference_columns(const Spec& spec, const std::vector<Event>& events) {
  ReferenceChunker reference(spec);
  for (const Event& event : events) {
    reference.event(event);
    if (event.kind == Event::Kind::end || event.kind == Event::Kind::abort) break;
  }
  Columns all;
  for (const auto& row : reference.rows()) all.emplace_back(row.begin(), row.end());
  return all;
}

Columns reference_messages(const Spec& spec, const std::vector<Event>& events) {
  ReferenceChunker reference(spec);
  for (const Event& event : events) reference.event(event);
  Columns all;
  for (const auto& message : reference.messages()) all.emplace_back(message.begin(), message.end());
  return all;
}

Columns messages_of(const Spec& spec, const std::vector<Event>& events) {
  Chunker chunker(spec);
  Columns all;
  std::uint64_t rows = 0;
  for (const Event& event : events) {
    chunker.add(event);
    if (event.kind == Event::Kind::open) rows = event.rows;
    if (event.has_text()) all.push_back({chunker.position(), rows});
    while (chunker.next()) ++rows;
  }
  return all;
}

Case random_case(std::mt19937_64& random) {
  Case made{random_rule(random), {}};
  if (random() % 4 == 0) made.events.push_back(open(at_most(random, 40), at_most(random, 9)));
  for (auto n = random() % 12; n > 0; --n)
    made.events.push_back(random_event(random, made.rule.spec));
  const auto last = random() % 8;
  if (last < 5) made.events.push_back(end());
  if (last == 6) made.events.push_back(abort_stream());
  return made;
}

json::value conformance(const char* file) {
  std::ifstream in(std::string(MILLRACE_CONFORMANCE "/") + file);
  return json::parse(std::string(std::istreambuf_iterator<char>(in), {}));
}

Spec spec_from(const json::value& value) {
  const auto number = [&](const char* key) {
    const json::value* found = value.as_object().if_contains(key);
    return found ? found->to_number<std::uint32_t>() : 0;
  };
  Spec spec{.size = number("size"),
            .step = number("step"),
            .first = number("first"),
            .left = number("left"),
            .right = number("right"),
            .tail = Spec::Tail::every_start,
            .min = number("min")};
  if (const json::value* tail = value.as_object().if_contains("tail"))
    spec.tail =
        static_cast<Spec::Tail>(std::ranges::find(tails, tail->as_string()) - tails.begin());
  return spec;
}

std::vector<Event> events_from(const json::value& value) {
  std::vector<Event> events;
  for (const json::value& event : value.as_array()) {
    const auto kind = std::ranges::find(kinds, event.at(0).as_string()) - kinds.begin();
    const json::value& n = event.at(1);
    events.push_back({.kind = static_cast<Event::Kind>(kind),
                      .count = (n.is_array() ? n.at(0) : n).to_number<std::uint64_t>(),
                      .rows = n.is_array() ? n.at(1).to_number<std::uint64_t>() : 0});
  }
  return events;
}

json::object to_json(const Spec& spec) {
  return {{"size", spec.size},   {"step", spec.step},
          {"first", spec.first}, {"left", spec.left},
          {"right", spec.right}, {"tail", tails[static_cast<std::size_t>(spec.tail)]},
          {"min", spec.min}};
}

json::array to_json(const std::vector<Event>& events) {
  json::array all;
  for (const Event& event : events) {
    json::value n = event.count;
    if (event.kind == Event::Kind::open) n = json::array{event.count, event.rows};
    all.push_back(json::array{kinds[static_cast<std::size_t>(event.kind)], n});
  }
  return all;
}

}  // namespace millrace
