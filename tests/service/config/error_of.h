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

}  // namespace millrace::test
