// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace millrace {

// The name of the enumerator with this value, as in the code; empty if no enumerator has it. GCC
// and Clang print "value = millrace::Loss::gap" for an enumerator and "value = (millrace::Loss)9"
// for any other value.
template <auto value>
constexpr std::string_view enumerator() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view key = "value = ";
  constexpr std::size_t begin = text.find(key) + key.size();
  constexpr std::string_view full = text.substr(begin, text.find_first_of(";]", begin) - begin);
  return full.front() == '(' ? std::string_view() : full.substr(full.rfind(':') + 1);
}

// The number of enumerators. Requires: their values are 0, 1, 2 …
template <class Enum, std::size_t from = 0>
requires std::is_enum_v<Enum>
constexpr std::size_t count_of() {
  if constexpr (enumerator<static_cast<Enum>(from)>().empty())
    return from;
  else
    return count_of<Enum, from + 1>();
}

// All values in ascending order. Requires: they are 0, 1, 2 …
template <class Enum>
constexpr auto values_of() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{static_cast<Enum>(i)...};
  }
  (std::make_index_sequence<count_of<Enum>()>());
}

// The enumerator's name. Requires: the values of Enum are 0, 1, 2 …, and `value` is one of them.
// The names are part of the protocols, the metrics and the configuration: renaming an enumerator
// changes these.
template <class Enum>
requires std::is_enum_v<Enum>
constexpr std::string_view name_of(Enum value) {
  constexpr auto names = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{enumerator<static_cast<Enum>(i)>()...};
  }
  (std::make_index_sequence<count_of<Enum>()>());
  return names[static_cast<std::size_t>(value)];
}

// The value with this name; nullopt if no value has it.
template <class Enum>
constexpr std::optional<Enum> value_named(std::string_view name) {
  for (const Enum value : values_of<Enum>())
    if (name_of(value) == name) return value;
  return std::nullopt;
}

}  // namespace millrace
