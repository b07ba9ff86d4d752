// SPDX-License-Identifier: Apache-2.0
#include "load/streams/load_stream_id.h"

#include <charconv>
#include <initializer_list>

namespace millrace::load {

namespace {

template <class Number>
bool skip_number(std::string_view& text, Number& number) {
  if (!text.starts_with('-')) return false;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

void write_numbers(std::string& out, std::initializer_list<std::uint64_t> numbers) {
  std::string_view separator = "";
  for (const std::uint64_t number : numbers) {
    out.append(separator).append(std::to_string(number));
    separator = "-";
  }
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
  write_numbers(out, {stream.client, stream.first, begin});
  out += '"';
}

void write_word(std::string& out, const LoadStreamId& stream, std::uint64_t begin,
                std::uint64_t end) {
  out = "r";
  write_numbers(out += '-', {stream.client, stream.first, begin, end});
}

std::optional<RowWord> parse_word(std::string_view word) {
  if (!word.starts_with('r')) return std::nullopt;
  word.remove_prefix(1);
  LoadStreamId stream;
  RowWord found;
  if (!skip_number(word, stream.client) || !skip_number(word, stream.first) ||
      !skip_number(word, found.begin) || !skip_number(word, found.end) || !word.empty())
    return std::nullopt;
  return found;
}

void write_transcript(std::string& out, const LoadStreamId& stream, std::uint64_t begin,
                      std::uint64_t end) {
  std::string word;
  write_word(word, stream, begin, end);
  out = R"({"text":")";
  out.append(word) += R"(","final":true})";
}

}  // namespace millrace::load
