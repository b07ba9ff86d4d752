// SPDX-License-Identifier: Apache-2.0
#include "service/config_value.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>

namespace millrace {

namespace {

int line_of(const toml::source_region& region) { return static_cast<int>(region.begin.line); }

ConfigValue convert(const toml::node& node);

ConfigTable convert(const toml::table& from) {
  ConfigTable table;
  for (const auto& [key, node] : from) table.push_back({std::string(key.str()), convert(node)});
  // The library keeps them by name.
  std::ranges::stable_sort(table, {}, [](const ConfigEntry& entry) { return entry.value.line; });
  return table;
}

ConfigArray convert(const toml::array& from) {
  ConfigArray array;
  for (const auto& node : from) array.push_back(convert(node));
  return array;
}

ConfigValue convert(const toml::node& node) {
  ConfigValue to{line_of(node.source()), {}};
  if (const auto* table = node.as_table()) to.value = convert(*table);
  if (const auto* array = node.as_array()) to.value = convert(*array);
  if (const auto* flag = node.as_boolean()) to.value = flag->get();
  if (const auto* whole = node.as_integer()) to.value = whole->get();
  if (const auto* number = node.as_floating_point()) to.value = number->get();
  if (const auto* text = node.as_string()) to.value = text->get();
  return to;
}

struct Readable {
  std::string operator()(std::monostate) const { return "a date or time"; }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(double number) const {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, number).ptr};
  }
  std::string operator()(const std::string& text) const { return quoted(text); }
  std::string operator()(const ConfigArray& array) const {
    return "[" + some(array, [](const ConfigValue& value) { return readable(value); }) + "]";
  }
  std::string operator()(const ConfigTable& table) const {
    return "{" +
           some(table,
                [](const ConfigEntry& entry) {
                  return printable(entry.key) + " = " + readable(entry.value);
                }) +
           "}";
  }

  template <class Entries, class Print>
  static std::string some(const Entries& entries, Print print) {
    constexpr std::size_t most = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(entries.size(), most); ++i)
      text += (i > 0 ? ", " : "") + print(entries[i]);
    return text + (entries.size() > most ? ", ..." : "");
  }
};

}  // namespace

Result<ConfigTable, TomlError> read_toml(std::string_view text) {
  const toml::parse_result parsed = toml::parse(text);
  if (parsed) return convert(parsed.table());
  return TomlError{line_of(parsed.error().source()), std::string(parsed.error().description())};
}

std::string readable(const ConfigValue& value) { return std::visit(Readable(), value.value); }

std::string printable(std::string_view text) {
  constexpr std::size_t most = 80;
  constexpr std::string_view hex = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, most)) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (code >= 0x20 && code != 0x7f)
      out += c;
    else
      (out += "\\x") += {hex[code / 16], hex[code % 16]};
  }
  return out + (text.size() > most ? "..." : "");
}

std::string quoted(std::string_view text) { return '"' + printable(text) + '"'; }

}  // namespace millrace
