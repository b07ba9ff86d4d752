// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace millrace {

// What a TOML text says, with the line of each value. Only its source knows the library that reads
// it.
struct ConfigValue;
struct ConfigEntry;
using ConfigArray = std::vector<ConfigValue>;
using ConfigTable = std::vector<ConfigEntry>;

struct ConfigValue {
  int line = 0;
  // std::monostate: a date or a time of day, which no key takes.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, ConfigArray, ConfigTable>
      value;
};

struct ConfigEntry {
  std::string key;
  ConfigValue value;
};

struct TomlError {
  int line = 0;
  std::string message;
};

// Entries in the order of the text.
Result<ConfigTable, TomlError> read_toml(std::string_view text);

// For messages.
std::string readable(const ConfigValue& value);

// All of it, as a string of TOML.
std::string toml_string(std::string_view text);

}  // namespace millrace
