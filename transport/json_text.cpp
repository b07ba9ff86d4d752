// SPDX-License-Identifier: Apache-2.0
#include "transport/json_text.h"

#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>

namespace millrace {
namespace {

namespace json = boost::json;

// Takes every event of the parser and keeps nothing.
struct Ignore {
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  using Error = json::error_code;
  using Text = json::string_view;
  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) { return true; }
  bool on_object_end(std::size_t, Error&) { return true; }
  bool on_array_begin(Error&) { return true; }
  bool on_array_end(std::size_t, Error&) { return true; }
  bool on_key_part(Text, std::size_t, Error&) { return true; }
  bool on_key(Text, std::size_t, Error&) { return true; }
  bool on_string_part(Text, std::size_t, Error&) { return true; }
  bool on_string(Text, std::size_t, Error&) { return true; }
  bool on_number_part(Text, Error&) { return true; }
  bool on_int64(std::int64_t, Text, Error&) { return true; }
  bool on_uint64(std::uint64_t, Text, Error&) { return true; }
  bool on_double(double, Text, Error&) { return true; }
  bool on_bool(bool, Error&) { return true; }
  bool on_null(Error&) { return true; }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }
};

template <class Number>
void append_digits(std::string& out, Number value) {
  std::array<char, 32> digits;
  out.append(digits.data(), std::to_chars(digits.begin(), digits.end(), value).ptr);
}

}  // namespace

void append_number(std::string& out, std::uint64_t value) { append_digits(out, value); }
void append_number(std::string& out, double value) { append_digits(out, value); }

void append_string(std::string& out, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      out.append({'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]});
    } else {
      out += c;
    }
  }
  out += '"';
}

bool is_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = 64;
  json::basic_parser<Ignore> parser(options);
  json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  return !error && used == text.size();
}

bool is_json_object(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' && is_json(text);
}

}  // namespace millrace
