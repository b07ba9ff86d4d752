// SPDX-License-Identifier: Apache-2.0
#include "schemas/json_member.h"

#include <algorithm>
#include <cstddef>

namespace millrace {
namespace {

constexpr std::string_view blank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(blank)));
  return text.substr(0, text.find_last_not_of(blank) + 1);
}

// The index after the string that begins at `begin`.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  std::size_t i = begin + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return std::min(text.size(), i + 1);
}

// The value that `text` begins with.
std::string_view value_in(std::string_view text) {
  std::size_t depth = 0, i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '"') {
      i = end_of_string(text, i);
    } else if (depth == 0 && (c == ',' || c == '}' || c == ']' || c == ':')) {
      break;
    } else {
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++i;
    }
  }
  return text.substr(0, i);
}

}  // namespace

std::string_view member_text(std::string_view object, std::string_view name) {
  std::string_view rest = object.substr(std::min(object.size(), object.find('{') + 1));
  const auto next_part = [&rest] {
    const std::string_view value = value_in(rest);
    rest.remove_prefix(std::min(rest.size(), value.size() + 1));  // with its separator
    return trimmed(value);
  };
  while (!rest.empty()) {
    const std::string_view key = next_part();
    const std::string_view value = next_part();
    if (key.size() == name.size() + 2 && key.substr(1, name.size()) == name) return value;
  }
  return {};
}

}  // namespace millrace
