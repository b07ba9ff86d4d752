// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/instant.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

namespace millrace::recordings {
namespace {

namespace chrono = std::chrono;

constexpr std::int64_t second = 1'000'000'000;

// Appends at least `digits` digits. With printf, a million streams took half a second more.
void append(std::string& text, std::int64_t number, std::size_t digits) {
  const std::string written = std::to_string(number);
  text.append(digits - std::min(digits, written.size()), '0');
  text += written;
}

// The instant, rounded down to a whole number of `unit` nanoseconds.
std::string iso(std::int64_t instant, std::int64_t unit) {
  const chrono::sys_seconds whole(chrono::floor<chrono::seconds>(chrono::nanoseconds(instant)));
  const auto day = chrono::floor<chrono::days>(whole);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss time(whole - day);
  std::string text;
  append(text, static_cast<int>(date.year()), 4);
  append(text += '-', static_cast<unsigned>(date.month()), 2);
  append(text += '-', static_cast<unsigned>(date.day()), 2);
  append(text += 'T', time.hours().count(), 2);
  append(text += ':', time.minutes().count(), 2);
  append(text += ':', time.seconds().count(), 2);
  const std::int64_t part = instant - whole.time_since_epoch().count() * second;
  if (unit < second) append(text += '.', part / 1'000'000, 3);
  return text += 'Z';
}

// Reads the parts of an instant from front to back.
class Parts {
 public:
  explicit Parts(std::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }
  bool take(std::string_view one_of) {
    if (text_.empty() || one_of.find(text_.front()) == one_of.npos) return false;
    text_.remove_prefix(1);
    return true;
  }
  // A number of exactly `digits` digits, at most `most`.
  std::optional<int> number(std::size_t digits, int most) {
    int value = 0;
    if (text_.size() < digits) return std::nullopt;
    for (const char c : text_.substr(0, digits)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    text_.remove_prefix(digits);
    return value <= most ? std::optional(value) : std::nullopt;
  }
  // Decimals of a second, as nanoseconds. At most nine.
  std::optional<std::int64_t> decimals() {
    std::int64_t value = 0, unit = second;
    while (!text_.empty() && text_.front() >= '0' && text_.front() <= '9' && unit > 1) {
      value = value * 10 + (text_.front() - '0');
      unit /= 10;
      text_.remove_prefix(1);
    }
    return unit < second ? std::optional(value * unit) : std::nullopt;
  }

 private:
  std::string_view text_;
};

std::optional<chrono::sys_days> date_of(Parts& parts) {
  const auto year = parts.number(4, 2261);
  if (!year || *year < 1970 || !parts.take("-")) return std::nullopt;
  const auto month = parts.number(2, 12);
  if (!month || !parts.take("-")) return std::nullopt;
  const auto day = parts.number(2, 31);
  if (!day) return std::nullopt;
  const chrono::year_month_day date(chrono::year(*year),
                                    chrono::month(static_cast<unsigned>(*month)),
                                    chrono::day(static_cast<unsigned>(*day)));
  return date.ok() ? std::optional(chrono::sys_days(date)) : std::nullopt;
}

std::optional<std::int64_t> time_of_day(Parts& parts) {
  const auto hour = parts.number(2, 23);
  if (!hour || !parts.take(":")) return std::nullopt;
  const auto minute = parts.number(2, 59);
  if (!minute) return std::nullopt;
  std::int64_t time = (*hour * 60 + *minute) * 60 * second;
  if (!parts.take(":")) return time;
  const auto seconds = parts.number(2, 59);
  if (!seconds) return std::nullopt;
  time += *seconds * second;
  if (!parts.take(".")) return time;
  const auto decimals = parts.decimals();
  return decimals ? std::optional(time + *decimals) : std::nullopt;
}

// The time by which local time is ahead of UTC.
std::optional<std::int64_t> zone_of(Parts& parts) {
  if (parts.done() || parts.take("Zz")) return 0;
  const bool behind = parts.take("-");
  if (!behind && !parts.take("+")) return std::nullopt;
  const auto hours = parts.number(2, 14);
  if (!hours) return std::nullopt;
  parts.take(":");
  const auto minutes = parts.number(2, 59);
  if (!minutes) return std::nullopt;
  const std::int64_t ahead = (*hours * 60 + *minutes) * 60 * second;
  return behind ? -ahead : ahead;
}

}  // namespace

std::string iso_seconds(std::int64_t instant) { return iso(instant, second); }

std::string iso_milliseconds(std::int64_t instant) { return iso(instant, 1'000'000); }

std::optional<std::int64_t> parse_instant(std::string_view text) {
  Parts parts(text);
  const auto date = date_of(parts);
  if (!date) return std::nullopt;
  const std::int64_t day = date->time_since_epoch().count() * 86'400 * second;
  if (parts.done()) return day;
  if (!parts.take("T ")) return std::nullopt;
  const auto time = time_of_day(parts);
  if (!time) return std::nullopt;
  const auto ahead = zone_of(parts);
  if (!ahead || !parts.done()) return std::nullopt;
  return day + *time - *ahead;
}

std::string clock_time(double seconds) {
  const auto hundredths = std::llround(std::clamp(seconds, 0.0, 1e12) * 100);
  std::string text;
  append(text, hundredths / 360'000, 1);
  append(text += ':', hundredths / 6000 % 60, 2);
  append(text += ':', hundredths / 100 % 60, 2);
  append(text += '.', hundredths % 100, 2);
  return text;
}

}  // namespace millrace::recordings
