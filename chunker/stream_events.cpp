// SPDX-License-Identifier: Apache-2.0
#include "chunker/stream_events.h"

#include <algorithm>
#include <array>

#include "chunker/chunker.h"
#include "chunker/row_layout.h"

namespace millrace {
namespace {

using Kind = Event::Kind;

struct Word {
  std::string_view name;
  Kind kind;
};
constexpr std::array words{
    Word{"frames", Kind::frames}, Word{"size", Kind::size}, Word{"flush", Kind::flush},
    Word{"reset", Kind::reset},   Word{"gap", Kind::gap},   Word{"message", Kind::message},
    Word{"set", Kind::set},       Word{"end", Kind::end},   Word{"abort", Kind::abort}};

bool moves(const Event& event) { return event.kind == Kind::frames || event.kind == Kind::gap; }

}  // namespace

Result<void, std::string> StreamEvents::add(std::string_view kind, std::uint64_t count) {
  if (ended_) return {};
  const auto* word = std::ranges::find(words, kind, &Word::name);
  if (word == words.end())
    return std::string("\"").append(kind).append(
        "\" must be \"frames\", \"size\", \"flush\", \"reset\", \"gap\", \"message\", \"set\", "
        "\"end\" or \"abort\"");
  Event event;
  event.kind = word->kind;
  event.count = count;
  if (const auto checked = check(event); !checked) return checked.error();
  if (moves(event)) position_ += count;
  ended_ = event.kind == Kind::end || event.kind == Kind::abort;
  events_.push_back(event);
  return {};
}

Result<void, std::string> StreamEvents::open(std::uint64_t position, std::uint64_t rows) {
  if (ended_) return {};
  if (!events_.empty()) return std::string("\"open\" must be the first event");
  if (std::max(position, rows) > max_position)
    return "a position and a number of rows must be at most " + std::to_string(max_position);
  position_ = position;
  events_.push_back({.count = position, .rows = rows});
  return {};
}

Result<void, std::string> StreamEvents::check(const Event& event) const {
  if (event.kind == Kind::size) {
    if (const auto checked = rule_.spec.check_size(event.count); !checked)
      return checked.error().message;
    if (!rule_.sizes.sizes.empty() && !rule_.allows_body(event.count))
      return "size " + std::to_string(event.count) + " must be one of sizes, or its first body";
  }
  if (event.kind == Kind::gap && event.count < 1)
    return std::string("a gap must have at least 1 frame");
  if (moves(event) && event.count > max_position - position_)
    return "the stream must have at most " + std::to_string(max_position) + " frames";
  return {};
}

bool StreamEvents::has_size_event() const {
  return std::ranges::find(events_, Kind::size, &Event::kind) != events_.end();
}

Spec StreamEvents::spec() const { return has_size_event() ? rule_.chunker_spec() : rule_.spec; }

std::uint32_t StreamEvents::width() const {
  if (!rule_.sizes.sizes.empty()) return rule_.width();
  std::uint64_t size = 0;
  for (const Event& event : events_)
    if (event.kind == Kind::size) size = std::max(size, event.count);
  return width_for(rule_.spec, static_cast<std::uint32_t>(size));
}

}  // namespace millrace
