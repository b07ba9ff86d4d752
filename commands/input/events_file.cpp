// SPDX-License-Identifier: Apache-2.0
#include "commands/input/events_file.h"

#include <boost/json.hpp>
#include <cstddef>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

namespace millrace {
namespace {

namespace json = boost::json;

// nullopt if the file cannot be read.
std::optional<std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  for (char part[4096]; in.read(part, sizeof part) || in.gcount() > 0;)
    text.append(part, static_cast<std::size_t>(in.gcount()));
  if (!in.is_open() || in.bad()) return std::nullopt;
  return text;
}

Result<json::array, std::string> parse_array(const std::string& text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error) return "is not JSON: " + error.message();
  if (!value.is_array()) return std::string("must be a JSON array of events");
  return std::move(value.get_array());
}

// The events of lines with an object each, as an array of pairs. Lines without "event" are answers
// and totals. An `open` is an element of the array only if the stream is opened anew.
Result<json::array, std::string> parse_lines(const std::string& text) {
  json::array events;
  std::istringstream lines(text);
  std::size_t number = 0;
  bool has_event = false;
  for (std::string line; std::getline(lines, line);) {
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    ++number;
    if (error || !value.is_object())
      return "line " + std::to_string(number) + ": must be a JSON object";
    const json::value* kind = value.get_object().if_contains("event");
    const json::value* count = value.get_object().if_contains("count");
    has_event = has_event || kind != nullptr;
    if (kind == nullptr) continue;
    const json::value given = count == nullptr ? json::value() : *count;
    const json::value* rows = value.get_object().if_contains("rows");
    if (*kind != "open")
      events.push_back({*kind, given});
    else if (rows != nullptr)
      events.push_back({*kind, json::array{given, *rows}});
  }
  if (!has_event)
    return std::string("must be a JSON array of events, or lines of millrace recordings show");
  return events;
}

Result<std::uint64_t, std::string> number(const json::value& value) {
  boost::system::error_code error;
  const auto number = value.to_number<std::uint64_t>(error);
  if (error) return json::serialize(value) + " must be a whole number, at least 0";
  return number;
}

// The position and the number of rows before it.
Result<void, std::string> open(const json::value& value, StreamEvents& to) {
  const json::array* pair = value.if_array();
  if (pair == nullptr || pair->size() != 2)
    return std::string("must have a position and a number of rows, like [\"open\", [1600, 3]]");
  const auto position = number(pair->front()), rows = number(pair->back());
  if (!position) return position.error();
  return rows ? to.open(*position, *rows) : rows.error();
}

Result<void, std::string> add(const json::value& value, StreamEvents& to) {
  const json::array* pair = value.if_array();
  if (pair == nullptr || pair->size() != 2 || !pair->front().is_string())
    return std::string("must be a pair of an event and a count, like [\"frames\", 1600]");
  if (pair->front() == "open") return open(pair->back(), to);
  const auto count = number(pair->back());
  return count ? to.add(pair->front().as_string(), *count) : count.error();
}

}  // namespace

Result<StreamEvents, std::string> read_events(const std::string& path, const ChunkRule& rule) {
  const auto text = read_text(path);
  if (!text) return path + ": cannot be read";
  const auto all = text->starts_with('{') ? parse_lines(*text) : parse_array(*text);
  if (!all) return path + ": " + all.error();
  StreamEvents events(rule);
  for (std::size_t i = 0; i < all->size() && !events.ended(); ++i) {
    if (const auto added = add((*all)[i], events); !added)
      return path + ": event " + std::to_string(i) + ": " + added.error();
  }
  return events;
}

}  // namespace millrace
