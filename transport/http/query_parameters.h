// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace millrace {

// The parameters of an HTTP target: "/path?name=value&name=value". Pure.

// The (name, value) pairs in their order, not decoded. Empty pieces ("a=1&&b=2") are skipped. The
// views refer to `target`.
std::vector<std::pair<std::string_view, std::string_view>> parameters_of(std::string_view target);

// Decodes percent-encoding, and '+' to a space. Nullopt if two hexadecimal digits do not follow
// each '%'.
std::optional<std::string> percent_decoded(std::string_view text);

// The number that `text` contains; nullopt unless the whole text is a number of this type.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace millrace
