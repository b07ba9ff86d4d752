// SPDX-License-Identifier: Apache-2.0
#include "schemas/text.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <cstdint>
#include <cstring>
#include <utility>

namespace millrace {
namespace {

// A handler of Boost.JSON's parser that accepts every event.
struct AnyJson {
  using error_code = boost::json::error_code;
  using string_view = boost::json::string_view;

  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t, error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t, error_code&) { return true; }
  bool on_key_part(string_view, std::size_t, error_code&) { return true; }
  bool on_key(string_view, std::size_t, error_code&) { return true; }
  bool on_string_part(string_view, std::size_t, error_code&) { return true; }
  bool on_string(string_view, std::size_t, error_code&) { return true; }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t, string_view, error_code&) { return true; }
  bool on_uint64(std::uint64_t, string_view, error_code&) { return true; }
  bool on_double(double, string_view, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }
};

// Keeps the characters of a string.
struct StringJson : AnyJson {
  std::string text;

  bool on_string_part(string_view part, std::size_t, error_code&) { return add(part); }
  bool on_string(string_view part, std::size_t, error_code&) { return add(part); }
  bool add(string_view part) {
    text.append(part.data(), part.size());
    return true;
  }
};

bool is_name_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// The length of the UTF-8 sequence at the beginning of `text`; 0 if it is invalid, not in its
// shortest form, or a surrogate.
std::size_t sequence_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  if ((first == 0xe0 && at(1) < 0xa0) || (first == 0xed && at(1) > 0x9f)) return 0;
  if ((first == 0xf0 && at(1) < 0x90) || (first == 0xf4 && at(1) > 0x8f)) return 0;
  return length;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const std::size_t size = text.size();
  while (!text.empty()) {
    // Most text is ASCII: eight characters at once take a tenth of the time.
    if (std::uint64_t word = 0; text.size() >= sizeof word) {
      std::memcpy(&word, text.data(), sizeof word);
      if ((word & 0x8080808080808080) == 0) {
        text.remove_prefix(sizeof word);
        continue;
      }
    }
    const std::size_t length = sequence_length(text);
    if (length == 0) break;
    text.remove_prefix(length);
  }
  return size - text.size();
}

bool is_utf8(std::string_view text) { return utf8_length(text) == text.size(); }

std::string string_value(std::string_view string) {
  boost::json::basic_parser<StringJson> parser{boost::json::parse_options()};
  boost::json::error_code error;
  parser.write_some(false, string.data(), string.size(), error);
  return std::move(parser.handler().text);
}

std::string string_in(std::string_view value) {
  return value.starts_with('"') ? string_value(value) : std::string();
}

std::string_view cut_text(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

Character first_character(std::string_view text) {
  const std::size_t size = sequence_length(text);
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (size < 2) return {size, at(0)};
  char32_t code = at(0) & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (at(i) & 0x3fU);
  return {size, code};
}

bool is_printable(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) {
    return code >= first && code <= last;
  };
  return !within(0, 0x1f) && !within(0x7f, 0x9f) && code != 0x61c && !within(0x200e, 0x200f) &&
         !within(0x2028, 0x202e) && !within(0x2066, 0x2069);
}

bool is_json(std::string_view text, std::size_t depth) {
  boost::json::parse_options options;
  options.max_depth = depth;
  boost::json::basic_parser<AnyJson> parser(options);
  boost::json::error_code error;
  return parser.write_some(false, text.data(), text.size(), error) == text.size() && !error;
}

bool is_json_object(std::string_view text, std::size_t depth) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' && is_json(text, depth);
}

bool is_printable(std::string_view text, std::size_t max_size) {
  if (text.size() > max_size) return false;
  while (!text.empty()) {
    const auto [size, code] = first_character(text);
    if (size == 0 || !is_printable(code)) return false;
    text.remove_prefix(size);
  }
  return true;
}

bool is_tenant_name(std::string_view text) {
  return is_name(text) && text.size() <= 64 && text != "." && text != "..";
}

bool is_stream_name(std::string_view text) {
  const bool has_tenant = text.find('/') != text.npos;
  return is_name(id_in(text)) && (!has_tenant || is_tenant_name(tenant_in(text)));
}

std::string_view id_in(std::string_view stream_name) {
  const auto slash = stream_name.find('/');
  return slash == stream_name.npos ? stream_name : stream_name.substr(slash + 1);
}

std::string_view tenant_in(std::string_view stream_name) {
  const auto slash = stream_name.find('/');
  return stream_name.substr(0, slash == stream_name.npos ? 0 : slash);
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, is_name_character);
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_path(std::string_view path) {
  const bool is_plain = path.starts_with('/') || path.starts_with('.');
  return shell_quoted((is_plain ? "" : "./") + std::string(path));
}

}  // namespace millrace
