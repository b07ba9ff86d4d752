// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace millrace {

// The content of a TOML text, with the line of each value. Only config_value.cpp uses the TOML
// library.
struct ConfigValue;
struct ConfigEntry;
using ConfigArray = std::vector<ConfigValue>;
using ConfigTable = std::vector<ConfigEntry>;

struct ConfigValue {
  int line = 0;
  // Duration: a moment, since 1970. std::monostate: a date or a time without an offset, which no
  // key accepts.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Duration, ConfigArray,
               ConfigTable>
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

// The entries are in the order of the text.
Result<ConfigTable, TomlError> read_toml(std::string_view text);

// The value for messages; long lists are cut.
std::string readable(const ConfigValue& value);

// The whole text as a TOML string.
std::string toml_string(std::string_view text);

}  // namespace millrace
