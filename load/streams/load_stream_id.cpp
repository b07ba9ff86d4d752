// SPDX-License-Identifier: Apache-2.0
#include "load/streams/load_stream_id.h"

#include <charconv>

namespace millrace::load {

namespace {

template <class Number>
bool skip_number(std::string_view& text, Number& number) {
  if (!text.starts_with('-')) return false;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

}  // namespace

std::string stream_name(std::string_view run, const LoadStreamId& stream) {
  return std::string(run) + "-" + std::to_string(stream.client) + "-" +
         std::to_string(stream.first);
}

std::optional<LoadStreamId> parse_stream_name(std::string_view run, std::string_view name) {
  if (!name.starts_with(run)) return std::nullopt;
  name.remove_prefix(run.size());
  LoadStreamId found;
  if (!skip_number(name, found.client) || !skip_number(name, found.first) || !name.empty())
    return std::nullopt;
  return found;
}

void write_answer(std::string& out, const LoadStreamId& stream, std::uint64_t begin) {
  out = '"';
  out += std::to_string(stream.client) += '-';
  out += std::to_string(stream.first) += '-';
  out += std::to_string(begin) += '"';
}

}  // namespace millrace::load
