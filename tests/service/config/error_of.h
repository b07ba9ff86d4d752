// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "service/config/options.h"

namespace millrace::test {

// The error of a configuration in the file m.toml.
inline std::string error_of(std::string_view text) {
  const auto result = parse_options(text, "m.toml");
  return result ? "no error" : result.error();
}

// The error for these keys on line 2, in a [[pipeline]].
inline std::string pipeline_error(const std::string& keys) {
  return error_of("[[pipeline]]\n" + keys);
}

// What the error for this value of a key says is allowed, if it names the key, the value and the
// line; otherwise the whole error. `table` is "pipeline", "listen" …, and `key` may have dots.
inline std::string allowed(const std::string& table, const std::string& key,
                           const std::string& value, const std::string& others = "") {
  const std::string head = table == "pipeline" ? "[[pipeline]]" : "[" + table + "]";
  const std::string error = error_of(head + "\n" + key + " = " + value + "\n" + others);
  const std::string begin = "m.toml:2: key '" + table + "." + key + "' = " + value + ": ";
  return error.starts_with(begin) ? error.substr(begin.size()) : error;
}

}  // namespace millrace::test
