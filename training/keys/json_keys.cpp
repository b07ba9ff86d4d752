// SPDX-License-Identifier: Apache-2.0
#include "training/keys/json_keys.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

namespace millrace::training {
namespace {

namespace json = boost::json;

// The number of letters to insert, remove or replace.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

std::optional<std::string_view> nearest(std::string_view key,
                                        const std::vector<std::string_view>& allowed) {
  if (key.size() > 64 || allowed.empty()) return std::nullopt;
  const auto best = std::ranges::min_element(
      allowed, {}, [&](std::string_view name) { return distance(key, name); });
  if (distance(key, *best) > key.size() / 3 + 1) return std::nullopt;
  return *best;
}

// A whole number that is not negative; Python may give it as a float.
std::optional<std::uint64_t> whole(const json::value& value) {
  if (const auto* number = value.if_uint64()) return *number;
  if (const auto* number = value.if_int64(); number && *number >= 0)
    return static_cast<std::uint64_t>(*number);
  constexpr double exact = 9007199254740992;  // 2^53
  if (const auto* number = value.if_double();
      number && *number >= 0 && *number <= exact && std::floor(*number) == *number)
    return static_cast<std::uint64_t>(*number);
  return std::nullopt;
}

std::string shortened(const json::value& value) {
  std::string text = json::serialize(value);
  constexpr std::size_t longest = 80;
  if (text.size() <= longest) return text;
  text.resize(longest);
  return text.append("…");
}

}  // namespace

std::string listed(const std::vector<std::string_view>& names, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : last;
    text += names[i];
  }
  return text;
}

PlanError wrong(std::string_view key, const json::value& value, std::string_view sentence) {
  return {std::string(key),
          std::string(key) + " = " + shortened(value) + " " + std::string(sentence)};
}

PlanError unknown(std::string_view key, const std::vector<std::string_view>& allowed) {
  std::string message = std::string(key) + " is an unknown key";
  if (const auto name = nearest(key, allowed))
    message += "; did you mean " + std::string(*name) + "?";
  return {std::string(key),
          message + (message.back() == '?' ? " The" : "; the") + " keys are " + listed(allowed)};
}

Outcome read_count(std::string_view key, const json::value& value, std::uint64_t least,
                   std::uint64_t most, std::uint64_t& into) {
  const auto number = whole(value);
  if (number && *number >= least && *number <= most) {
    into = *number;
    return {};
  }
  return wrong(
      key, value,
      most == std::numeric_limits<std::uint64_t>::max()
          ? "must be a whole number of at least " + std::to_string(least)
          : "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

Outcome read_count(std::string_view key, const json::value& value, std::uint32_t least,
                   std::uint32_t most, std::uint32_t& into) {
  std::uint64_t number = 0;
  if (const auto read = read_count(key, value, std::uint64_t{least}, std::uint64_t{most}, number);
      !read)
    return read.error();
  into = static_cast<std::uint32_t>(number);
  return {};
}

Outcome read_number(std::string_view key, const json::value& value, double& into) {
  if (!value.is_number()) return wrong(key, value, "must be a number");
  into = value.to_number<double>();
  return {};
}

Outcome read_flag(std::string_view key, const json::value& value, bool& into) {
  if (!value.is_bool()) return wrong(key, value, "must be true or false");
  into = value.get_bool();
  return {};
}

Outcome read_text(std::string_view key, const json::value& value, std::string& into) {
  if (!value.is_string() || value.get_string().empty()) return wrong(key, value, "must be a text");
  into = value.get_string();
  return {};
}

Outcome read_ascending(std::string_view key, const json::value& value,
                       std::vector<std::uint32_t>& into) {
  const char* sentence = "must be a list of ascending numbers of at least 1";
  if (!value.is_array()) return wrong(key, value, sentence);
  into.clear();
  for (const json::value& one : value.get_array()) {
    std::uint32_t number = 0;
    const bool read = read_count(key, one, 1u, 0x7fff'ffffu, number).has_value();
    if (!read || (!into.empty() && number <= into.back())) return wrong(key, value, sentence);
    into.push_back(number);
  }
  return {};
}

}  // namespace millrace::training
