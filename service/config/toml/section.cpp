// SPDX-License-Identifier: Apache-2.0
#include "service/config/toml/section.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "chunker/lengths.h"
#include "service/config/toml/units.h"
#include "service/log/printable.h"

namespace millrace {

namespace {

// The edit distance: insertions, deletions and changes of characters that turn `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest(std::string_view key, const std::vector<std::string_view>& known) {
  if (key.size() > 64) return "";
  std::string_view best;
  std::size_t least = key.size() / 3 + 1;
  for (const std::string_view name : known)
    if (const std::size_t d = distance(key, name); d <= least && (best.empty() || d < least)) {
      least = d;
      best = name;
    }
  return std::string(best);
}

template <class Names>
std::string listed(const Names& names, std::string_view last) {
  std::string text;
  std::size_t i = 0;
  for (const auto& name : names) {
    if (i > 0) text += i + 1 < names.size() ? ", " : last;
    text += name;
    ++i;
  }
  return text;
}

const ConfigTable empty_table;

// A string, or a whole number as text.
std::optional<std::string> text_of(const ConfigValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.value)) return *text;
  if (std::holds_alternative<std::int64_t>(value.value)) return readable(value);
  return std::nullopt;
}

bool is_bare_length(const ConfigValue& value) {
  const auto* text = std::get_if<std::string>(&value.value);
  return text != nullptr && lacks_unit(*text);
}

constexpr std::string_view unknown_key = ": unknown; ";

}  // namespace

std::string Findings::error_with(const Findings& elsewhere) const {
  std::vector<std::string> tables;
  for (const auto& [key, table] : elsewhere.known)
    if (key == unknown) tables.push_back(table.empty() ? "the top level" : "'" + table + "'");
  if (tables.empty()) return *error;
  const auto guess = error->rfind(unknown_key) + unknown_key.size();
  const bool guesses = error->compare(guess, 3, "did") == 0;
  return error->substr(0, guess) + "'" + unknown + "' is a key of " + listed(tables, " and ") +
         (guesses ? "; or " + error->substr(guess) : "");
}

Section::Section(const ConfigTable& table, std::string name, int line, Findings& findings)
    : table_(&table), name_(std::move(name)), line_(line), findings_(&findings) {}

void Section::add_known(std::string_view key) {
  if (std::ranges::find(known_, key) != known_.end()) return;
  known_.push_back(key);
  findings_->known.emplace(key, name_);
}

bool Section::has(std::string_view key) {
  add_known(key);
  return std::ranges::find(*table_, key, &ConfigEntry::key) != table_->end();
}

bool Section::has_table(std::string_view key) {
  const ConfigValue* found = find(key);
  return found != nullptr && std::holds_alternative<ConfigTable>(found->value);
}

const ConfigValue* Section::find(std::string_view key) {
  add_known(key);
  if (findings_->error) return nullptr;
  const auto found = std::ranges::find(*table_, key, &ConfigEntry::key);
  return found == table_->end() ? nullptr : &found->value;
}

template <class T>
const T* Section::find_as(std::string_view key, std::string_view allowed) {
  const ConfigValue* found = find(key);
  if (found == nullptr) return nullptr;
  const T* value = std::get_if<T>(&found->value);
  if (value == nullptr) wrong(key, std::string(allowed));
  return value;
}

bool Section::flag(std::string_view key, bool fallback, std::string_view allowed) {
  const bool* value = find_as<bool>(key, allowed);
  return value != nullptr ? *value : fallback;
}

std::string Section::text(std::string_view key, std::string fallback) {
  const auto* value = find_as<std::string>(key, "must be a string in quotes");
  return value != nullptr ? *value : std::move(fallback);
}

// Leaves room for the name of a file in the directory: a path has at most PATH_MAX bytes.
std::string Section::file(std::string_view key) {
  constexpr std::size_t longest = 4000;
  if (!has(key)) return {};
  std::string path = text(key, "");
  if (path.empty() || path.size() > longest || path.find('\0') != std::string::npos)
    wrong(key, "must be a path of 1 to " + std::to_string(longest) + " bytes");
  return path;
}

std::string Section::one_of(std::string_view key, std::string fallback,
                            std::initializer_list<std::string_view> words) {
  std::vector<std::string> all;
  for (const std::string_view word : words) all.push_back(in_quotes(word));
  const std::string allowed = "must be " + listed(all, " or ");
  const auto* value = find_as<std::string>(key, allowed);
  if (value == nullptr) return fallback;
  if (std::ranges::find(words, *value) == words.end()) wrong(key, allowed);
  return *value;
}

std::variant<std::string, std::vector<std::string>> Section::text_or_texts(
    std::string_view key, std::string fallback, std::string_view allowed) {
  const ConfigValue* found = find(key);
  if (found == nullptr) return fallback;
  if (const auto* text = std::get_if<std::string>(&found->value)) return *text;
  const auto* array = std::get_if<ConfigArray>(&found->value);
  const auto is_text = [](const ConfigValue& entry) {
    return std::holds_alternative<std::string>(entry.value);
  };
  if (array == nullptr || !std::ranges::all_of(*array, is_text)) {
    wrong(key, std::string(allowed));
    return fallback;
  }
  std::vector<std::string> texts;
  for (const ConfigValue& entry : *array) texts.push_back(std::get<std::string>(entry.value));
  return texts;
}

std::uint32_t Section::count(std::string_view key, std::uint32_t fallback, std::uint32_t least,
                             std::uint32_t most) {
  const std::string allowed =
      "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  const auto* value = find_as<std::int64_t>(key, allowed);
  if (value == nullptr) return fallback;
  if (*value >= least && *value <= most) return static_cast<std::uint32_t>(*value);
  wrong(key, allowed);
  return fallback;
}

std::vector<std::uint32_t> Section::counts(std::string_view key) {
  const std::string allowed = "must be whole numbers above 0, like [1, 8, 16]";
  const auto* values = find_as<ConfigArray>(key, allowed);
  if (values == nullptr) return {};
  std::vector<std::uint32_t> numbers;
  for (const ConfigValue& entry : *values) {
    const auto* value = std::get_if<std::int64_t>(&entry.value);
    if (value == nullptr || *value < 1 || *value > std::numeric_limits<std::int32_t>::max()) {
      wrong(key, allowed);
      return {};
    }
    numbers.push_back(static_cast<std::uint32_t>(*value));
  }
  return numbers;
}

double Section::number(std::string_view key, double fallback, double most) {
  const ConfigValue* found = find(key);
  if (found == nullptr) return fallback;
  double value = 0;
  if (const auto* whole = std::get_if<std::int64_t>(&found->value))
    value = static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&found->value)) value = *real;
  if (value > 0 && value <= most) return value;
  wrong(key, "must be a number above 0, at most " + readable(most));
  return fallback;
}

Duration Section::time(std::string_view key, Duration fallback, Duration least, Duration most) {
  const std::string allowed =
      "must be a time with its unit (us, ms, s, min, h), like \"2ms\", from " + readable(least) +
      " to " + readable(most);
  const auto* text = find_as<std::string>(key, allowed);
  if (text == nullptr) return fallback;
  const auto value = parse_time(*text);
  if (value && *value >= least && *value <= most) return *value;
  wrong(key, allowed);
  return fallback;
}

std::size_t Section::bytes(std::string_view key, std::size_t fallback, std::size_t least,
                           std::size_t most) {
  const std::string allowed =
      "must be a size with its unit (B, KiB, MiB, GiB, TiB), like \"64KiB\", from " +
      readable_bytes(least) + " to " + readable_bytes(most);
  const auto* text = find_as<std::string>(key, allowed);
  if (text == nullptr) return fallback;
  const auto value = parse_bytes(*text);
  if (value && *value >= least && *value <= most) return *value;
  wrong(key, allowed);
  return fallback;
}

std::optional<Duration> Section::moment(std::string_view key) {
  const auto* value =
      find_as<Duration>(key, "must be a date and time with its offset, like 2027-01-01T00:00:00Z");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::vector<std::pair<std::string, std::string>> Section::named_texts(std::string_view key,
                                                                      std::string_view allowed) {
  const auto* table = find_as<ConfigTable>(key, allowed);
  if (table == nullptr) return {};
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [name, value] : *table) {
    const auto* text = std::get_if<std::string>(&value.value);
    if (text == nullptr)
      wrong(key, std::string(allowed));
    else
      all.emplace_back(name, *text);
  }
  return all;
}

Section Section::section(std::string_view key, std::string_view example) {
  const auto* table = find_as<ConfigTable>(key, "must be " + std::string(example));
  const auto found = std::ranges::find(*table_, key, &ConfigEntry::key);
  const int line = found == table_->end() ? line_ : found->value.line;
  return {table != nullptr ? *table : empty_table, path(key), line, *findings_};
}

std::vector<Section> Section::sections(std::string_view key) {
  const std::string allowed = "must be tables, each headed [[" + std::string(key) + "]]";
  const auto* array = find_as<ConfigArray>(key, allowed);
  if (array == nullptr) return {};
  std::vector<Section> all;
  for (const ConfigValue& value : *array) {
    const auto* table = std::get_if<ConfigTable>(&value.value);
    if (table == nullptr) {
      wrong(key, allowed);
      return {};
    }
    all.emplace_back(*table, path(key), value.line, *findings_);
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> Section::texts(
    const std::vector<std::string_view>& keys) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string_view key : keys) {
    const ConfigValue* found = find(key);
    if (found == nullptr) continue;
    auto text = text_of(*found);
    if (!text)
      wrong(key, "must be a string or a whole number");
    else if (is_bare_length(*found))
      wrong(key, std::string(unit_missing));
    else
      all.emplace_back(key, *std::move(text));
  }
  return all;
}

std::vector<std::string> Section::lengths(std::string_view key, std::string_view allowed) {
  const auto* values = find_as<ConfigArray>(key, allowed);
  if (values == nullptr) return {};
  const auto is_part = [](char c) {
    return c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
  };
  std::vector<std::string> texts;
  for (const ConfigValue& value : *values) {
    const auto text = text_of(value);
    if (!text || !std::ranges::all_of(*text, is_part)) {
      wrong(key, std::string(allowed));
      return {};
    }
    if (is_bare_length(value)) {
      wrong(key, std::string(unit_missing));
      return {};
    }
    texts.push_back(*text);
  }
  return texts;
}

void Section::wrong(std::string_view key, const std::string& allowed) {
  if (findings_->error) return;
  const auto found = std::ranges::find(*table_, key, &ConfigEntry::key);
  const bool absent = found == table_->end();
  findings_->error = findings_->file + ":" + std::to_string(absent ? line_ : found->value.line) +
                     ": key '" + path(key) + "'" +
                     (absent || !findings_->repeats_values ? "" : " = " + readable(found->value)) +
                     ": " + allowed;
}

void Section::refuse_unknown() {
  for (const auto& [key, value] : *table_) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    if (!findings_->error) findings_->unknown = key;
    const std::string guess = nearest(key, known_);
    wrong(key, guess.empty() ? "unknown; the keys here are " + listed(known_, " and ")
                             : "unknown; did you mean '" + guess + "'?");
  }
}

std::string Section::path(std::string_view key) const {
  return (name_.empty() ? "" : name_ + ".") + printable(key);
}

}  // namespace millrace
