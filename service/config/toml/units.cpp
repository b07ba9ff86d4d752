// SPDX-License-Identifier: Apache-2.0
#include "service/config/toml/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace millrace {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t size;
};
constexpr std::array times{Unit{"ns", 1},
                           Unit{"us", 1'000},
                           Unit{"ms", 1'000'000},
                           Unit{"s", 1'000'000'000},
                           Unit{"min", 60'000'000'000},
                           Unit{"h", 3'600'000'000'000}};
constexpr std::array sizes{Unit{"B", 1}, Unit{"KiB", 1 << 10}, Unit{"MiB", 1 << 20},
                           Unit{"GiB", 1 << 30}, Unit{"TiB", std::int64_t{1} << 40}};

template <class Units>
std::optional<std::int64_t> parse(std::string_view text, const Units& units) {
  const auto digits = text.find_first_not_of("0123456789.");
  if (digits == 0 || digits == text.npos) return std::nullopt;
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + digits, number);
  if (error != std::errc{} || stop != text.data() + digits) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name != text.substr(digits)) continue;
    const double value = std::round(number * static_cast<double>(unit.size));
    // Far below the limit of 64 bits, so that sums of such values are too.
    if (value > 1e18) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }
  return std::nullopt;
}

template <class Units>
std::string print(std::int64_t value, const Units& units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units)
    if (value >= unit.size && value % unit.size == 0) best = &unit;
  return std::to_string(value / best->size) + std::string(best->name);
}

}  // namespace

std::optional<Duration> parse_time(std::string_view text) {
  const auto value = parse(text, times);
  if (!value) return std::nullopt;
  return Duration(*value);
}

std::optional<std::size_t> parse_bytes(std::string_view text) {
  const auto value = parse(text, sizes);
  if (!value) return std::nullopt;
  return static_cast<std::size_t>(*value);
}

std::optional<double> parse_rate(std::string_view text) {
  double rate = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  const std::string_view unit = text.substr(static_cast<std::size_t>(stop - text.data()));
  if (error != std::errc{} || unit != "/s" || !(rate >= 0.001 && rate <= 1e6)) return std::nullopt;
  return rate;
}

std::string readable(Duration time) {
  return time == Duration(0) ? "0s" : print(time.count(), times);
}

std::string readable_bytes(std::size_t bytes) {
  return print(static_cast<std::int64_t>(bytes), sizes);
}

std::string rounded_bytes(std::size_t bytes) {
  const Unit* best = &sizes.front();
  for (const Unit& unit : sizes)
    if (bytes >= static_cast<std::size_t>(unit.size)) best = &unit;
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text,
                                 static_cast<double>(bytes) / static_cast<double>(best->size),
                                 std::chars_format::general, 4)
                       .ptr;
  return std::string(text, end) + " " + std::string(best->name);
}

}  // namespace millrace
