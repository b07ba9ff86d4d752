// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "service/config/toml/config_value.h"

namespace millrace {

// The first error of a configuration, if any: one line like
// `file:line: key 'name' = value: what is allowed`.
struct Findings {
  std::string file;
  std::optional<std::string> error;
  bool repeats_values = true;  // false: values may be secrets, and are in no error
  std::string unknown{};       // the key of the error, without its table, if the key is unknown
  std::set<std::pair<std::string, std::string>> known{};  // the keys asked for, as (key, table)

  // The error. If other tables have the unknown key, it names these tables first. `elsewhere` has
  // the keys of all tables. Requires: there is an error.
  std::string error_with(const Findings& elsewhere) const;
};

// Reads one table of the configuration. The caller asks for each key by its name (a literal), with
// the value to return if the key is absent (`fallback`). Errors go to the findings.
// After the first error the functions return the fallback or an empty value, so that the caller
// need not check after each key.
//
// The table and the findings must outlive it. Confined to one thread.
class Section {
 public:
  // `name` precedes the keys in messages: "listen". `line` is that of the table.
  Section(const ConfigTable& table, std::string name, int line, Findings& findings);

  // True if the key is set.
  bool has(std::string_view key);
  // True if the key is set to a table.
  bool has_table(std::string_view key);

  // `allowed` is the end of the error message.
  bool flag(std::string_view key, bool fallback,
            std::string_view allowed = "must be true or false");
  std::string text(std::string_view key, std::string fallback);
  // The path of a file or directory; empty if the key is absent.
  std::string file(std::string_view key);
  std::string one_of(std::string_view key, std::string fallback,
                     std::initializer_list<std::string_view> words);
  // A string or a list of strings. `allowed` is the end of the error message.
  std::variant<std::string, std::vector<std::string>> text_or_texts(std::string_view key,
                                                                    std::string fallback,
                                                                    std::string_view allowed);
  std::uint32_t count(std::string_view key, std::uint32_t fallback, std::uint32_t least,
                      std::uint32_t most);
  std::vector<std::uint32_t> counts(std::string_view key);
  double number(std::string_view key, double fallback, double most);  // above 0
  Duration time(std::string_view key, Duration fallback, Duration least, Duration most);
  std::size_t bytes(std::string_view key, std::size_t fallback, std::size_t least,
                    std::size_t most);
  // A date with its time and offset, as the time since 1970; nullopt if the key is absent.
  std::optional<Duration> moment(std::string_view key);

  // A table of strings with names of any kind, as (name, string).
  std::vector<std::pair<std::string, std::string>> named_texts(std::string_view key,
                                                               std::string_view allowed);

  // The table of this key; an empty one if the key is absent.
  Section section(std::string_view key, std::string_view example);
  // Every table [[key]], in order.
  std::vector<Section> sections(std::string_view key);
  // The keys of `keys` that are set, with their strings, or their whole numbers as text. A number
  // in quotes is an error, also for lengths(): a unit may be missing.
  std::vector<std::pair<std::string, std::string>> texts(const std::vector<std::string_view>& keys);

  // A list of lengths: strings or whole numbers, as text. `allowed` is the end of the error
  // message.
  std::vector<std::string> lengths(std::string_view key, std::string_view allowed);

  // Reports an error in the value of this key; `allowed` is the end of the message. If the key is
  // absent, the error has the line of the section.
  void wrong(std::string_view key, const std::string& allowed);

  // Reports an error if the table has a key that the caller has not asked for. Call it last.
  void refuse_unknown();

 private:
  void add_known(std::string_view key);
  const ConfigValue* find(std::string_view key);
  template <class T>
  const T* find_as(std::string_view key, std::string_view allowed);
  // The key with the names of its tables: "listen.admin".
  std::string path(std::string_view key) const;

  const ConfigTable* table_;
  std::string name_;
  int line_;
  Findings* findings_;
  std::vector<std::string_view> known_;
};

}  // namespace millrace
