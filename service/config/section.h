// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "service/config/config_value.h"

namespace millrace {

// What is wrong with a configuration: at most one error, the first, and warnings. Each is a line
// `file:line: key 'name' = value: what is allowed`.
struct Findings {
  std::string file;
  std::optional<std::string> error;
  std::vector<std::string> warnings;
};

// A table of the configuration as it is read: each key is asked for by name, with the value that
// stands where it is absent. What is wrong goes to the findings, and from the first error on
// every answer is that other value, so whoever reads need not look after each key. Names of keys
// are literals.
//
// Keeps references to table and findings. Confined to one thread.
class Section {
 public:
  // `name` stands before the keys in messages: "listen".
  Section(const ConfigTable& table, std::string name, int line, Findings& findings);

  bool has(std::string_view key);

  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string otherwise);
  std::string one_of(std::string_view key, std::string otherwise,
                     std::initializer_list<std::string_view> words);
  // A text, or a list of texts; `allowed` says which.
  std::variant<std::string, std::vector<std::string>> text_or_texts(std::string_view key,
                                                                    std::string otherwise,
                                                                    std::string_view allowed);
  std::uint32_t count(std::string_view key, std::uint32_t otherwise, std::uint32_t least,
                      std::uint32_t most);
  std::vector<std::uint32_t> counts(std::string_view key);
  double number(std::string_view key, double otherwise, double most);  // above 0
  Duration time(std::string_view key, Duration otherwise, Duration least, Duration most);
  std::size_t bytes(std::string_view key, std::size_t otherwise, std::size_t least,
                    std::size_t most);

  // A table; an empty one where the key is absent.
  Section section(std::string_view key, std::string_view example);
  // [[key]], as often as it stands there.
  std::vector<Section> sections(std::string_view key);
  // Those of `keys` that are there, whole numbers as text: for someone else to read.
  std::vector<std::pair<std::string, std::string>> texts(const std::vector<std::string_view>& keys);

  // The value of this key must be otherwise; `allowed` says how. Where the key is absent, the line
  // is that of the section.
  void wrong(std::string_view key, const std::string& allowed);
  // Warns that this key is part of the configuration and does nothing yet. For keys that can be
  // ignored safely; for others call refuse_not_built.
  void not_built(std::string_view key);
  // The same as an error, except for the value `false`, which asks for nothing. `risk` says what
  // would go wrong if the key were ignored.
  void refuse_not_built(std::string_view key, const std::string& risk);

  // To be called last: every key that was not asked for is an error.
  void end();

 private:
  void know(std::string_view key);  // a key that may stand here
  const ConfigValue* find(std::string_view key);
  template <class T>
  const T* find_as(std::string_view key, std::string_view allowed);
  std::string place(std::string_view key) const;

  const ConfigTable* table_;
  std::string name_;
  int line_;
  Findings* findings_;
  std::vector<std::string_view> known_;
};

}  // namespace millrace
