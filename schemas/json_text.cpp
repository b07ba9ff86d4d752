// SPDX-License-Identifier: Apache-2.0
#include "schemas/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "schemas/text.h"

namespace millrace {
namespace {

template <class Number>
void append_digits(std::string& out, Number value) {
  std::array<char, 32> digits;
  out.append(digits.data(), std::to_chars(digits.begin(), digits.end(), value).ptr);
}

constexpr std::array<std::string_view, 7> flag_names{"START", "RESET", "SEGMENT", "GAP",
                                                     "LAST",  "END",   "ABORT"};

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

void append_file_name(std::string& out, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  append_string(text, bytes);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t valid = utf8_length(rest);
    out += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const auto byte = static_cast<unsigned char>(rest.front());
    out.append("\\udc").append({digits[byte >> 4], digits[byte & 15]});
    rest.remove_prefix(1);
  }
}

std::string without_bytes(std::string_view json) {
  std::string text(json);
  for (std::size_t at = 0; (at = text.find('\\', at)) != std::string::npos; at += 2)
    if (text.compare(at, 4, "\\udc") == 0) text.replace(at, 4, "\\u00");
  return text;
}

void append_flags(std::string& out, std::uint8_t flags) {
  out += '[';
  std::string_view comma;
  for (std::size_t bit = 0; bit < flag_names.size(); ++bit) {
    if ((flags >> bit & 1) == 0) continue;
    out.append(comma).append("\"").append(flag_names[bit]).append("\"");
    comma = ",";
  }
  out += ']';
}

std::uint8_t flag_named(std::string_view name) {
  const auto found = std::ranges::find(flag_names, name);
  return found == flag_names.end() ? std::uint8_t{0}
                                   : static_cast<std::uint8_t>(1 << (found - flag_names.begin()));
}

}  // namespace millrace
