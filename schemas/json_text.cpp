// SPDX-License-Identifier: Apache-2.0
#include "schemas/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "schemas/text.h"

namespace millrace {
namespace {

template <class Number>
void append_digits(std::string& out, Number value) {
  std::array<char, 32> digits;
  const char* end = std::to_chars(digits.begin(), digits.end(), value).ptr;
  out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

constexpr std::array<std::string_view, 7> flag_names{"START", "RESET", "SEGMENT", "GAP",
                                                     "LAST",  "END",   "ABORT"};

constexpr std::string_view blank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(blank)));
  return text.substr(0, text.find_last_not_of(blank) + 1);
}

// The index after the string that begins at `begin`.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  for (std::size_t i = begin + 1; (i = text.find('"', i)) != text.npos; ++i) {
    const std::size_t before = text.find_last_not_of('\\', i - 1);  // at the latest the first quote
    if ((i - before) % 2 == 1) return i + 1;
  }
  return text.size();
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

void append_in_line(std::string& out, std::string_view text) {
  // White space between values may contain newlines; within strings these are escaped.
  for (const char c : text) out += c == '\n' || c == '\r' ? ' ' : c;
}

std::uint8_t flag_named(std::string_view name) {
  const auto found = std::ranges::find(flag_names, name);
  return found == flag_names.end() ? std::uint8_t{0}
                                   : static_cast<std::uint8_t>(1 << (found - flag_names.begin()));
}

namespace {

// Calls `each` with every name, in its quotes, and its value, until it returns false.
template <class Each>
void for_each_member(std::string_view object, Each each) {
  std::string_view rest = object.substr(std::min(object.size(), object.find('{') + 1));
  const auto next_part = [&rest] {
    const std::string_view value = value_in(rest);
    rest.remove_prefix(std::min(rest.size(), value.size() + 1));  // with its separator
    return trimmed(value);
  };
  while (!rest.empty()) {
    const std::string_view key = next_part();
    const std::string_view value = next_part();
    if (!key.empty() && !each(key, value)) return;
  }
}

}  // namespace

std::string_view member_text(std::string_view object, std::string_view name) {
  std::string_view found;
  for_each_member(object, [&](std::string_view key, std::string_view value) {
    const bool same = key.size() == name.size() + 2 && key.substr(1, name.size()) == name;
    if (same) found = value;
    return !same;
  });
  return found;
}

std::string merged_members(std::string_view object, const std::vector<std::string_view>& changes) {
  std::vector<std::pair<std::string_view, std::string_view>> changed;
  for (const std::string_view change : changes)
    for_each_member(change, [&](std::string_view key, std::string_view value) {
      changed.emplace_back(key, value);
      return true;
    });
  std::vector<std::size_t> by_name(changed.size());
  std::iota(by_name.begin(), by_name.end(), 0);
  const auto name = [&](std::size_t i) { return changed[i].first; };
  std::ranges::stable_sort(by_name, {}, name);
  std::string out = "{";
  const auto append = [&](std::string_view key, std::string_view value) {
    out.append(out.size() > 1 ? "," : "").append(key).append(":").append(value);
    return true;
  };
  for_each_member(object, [&](std::string_view key, std::string_view value) {
    return std::ranges::binary_search(by_name, key, {}, name) || append(key, value);
  });
  std::vector<bool> newest(changed.size(), true);
  for (std::size_t i = 1; i < by_name.size(); ++i)
    newest[by_name[i - 1]] = name(by_name[i - 1]) != name(by_name[i]);
  for (std::size_t i = 0; i < changed.size(); ++i)
    if (newest[i]) append(changed[i].first, changed[i].second);
  return out += '}';
}

}  // namespace millrace
