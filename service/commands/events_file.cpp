// SPDX-License-Identifier: Apache-2.0
#include "service/commands/events_file.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <fstream>
#include <string_view>
#include <utility>

#include "chunker/chunker.h"

namespace millrace {
namespace {

namespace json = boost::json;
using Kind = Event::Kind;

struct Word {
  std::string_view name;
  Kind kind;
};
constexpr std::array words{Word{"frames", Kind::frames}, Word{"size", Kind::size},
                           Word{"flush", Kind::flush},   Word{"reset", Kind::reset},
                           Word{"gap", Kind::gap},       Word{"end", Kind::end},
                           Word{"abort", Kind::abort}};

Result<json::array, std::string> read_array(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  for (char part[4096]; in.read(part, sizeof part) || in.gcount() > 0;)
    text.append(part, static_cast<std::size_t>(in.gcount()));
  if (!in.is_open() || in.bad()) return path + ": cannot be read";
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error) return path + ": is not JSON: " + error.message();
  if (!value.is_array()) return path + ": must be a JSON array of events";
  return std::move(value.get_array());
}

Result<Event, std::string> event_from(const json::value& value) {
  const json::array* pair = value.if_array();
  if (pair == nullptr || pair->size() != 2 || !pair->front().is_string())
    return "must be a pair [\"frames\", 1600] of what happens and a count";
  const auto* word = std::ranges::find(words, pair->front().as_string(), &Word::name);
  if (word == words.end())
    return json::serialize(pair->front()) +
           " must be \"frames\", \"size\", \"flush\", \"reset\", \"gap\", \"end\" or \"abort\"";
  boost::system::error_code error;
  const auto count = pair->back().to_number<std::uint64_t>(error);
  if (error) return json::serialize(pair->back()) + " must be a whole number, at least 0";
  Event event;
  event.kind = word->kind;
  event.count = count;
  return event;
}

// What a chunker requires of an event, and where the stream stands behind it.
Result<std::uint64_t, std::string> check_event(const Event& event, const Spec& spec,
                                               std::uint64_t position) {
  if (event.kind == Kind::size) {
    if (const auto checked = check_size(spec, event.count); !checked)
      return checked.error().message;
  }
  if (event.kind == Kind::gap && event.count < 1) return "a gap must have at least 1 frame";
  if (event.kind != Kind::frames && event.kind != Kind::gap) return position;
  if (event.count > max_position - position)
    return "the stream must have at most " + std::to_string(max_position) + " frames";
  return position + event.count;
}

}  // namespace

Result<std::vector<Event>, std::string> read_events(const std::string& path, const Spec& spec) {
  const auto all = read_array(path);
  if (!all) return all.error();
  std::vector<Event> events;
  std::uint64_t position = 0;
  for (const json::value& one : *all) {
    const std::string place = path + ": event " + std::to_string(events.size()) + ": ";
    const auto event = event_from(one);
    if (!event) return place + event.error();
    const auto behind = check_event(*event, spec, position);
    if (!behind) return place + behind.error();
    position = *behind;
    events.push_back(*event);
    if (event->kind == Kind::end || event->kind == Kind::abort) break;
  }
  return events;
}

}  // namespace millrace
