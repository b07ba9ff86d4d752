// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

// `text` with escapes for control characters and for each character of `others`: as in TOML, plus
// \xff for bytes that are not UTF-8, which TOML does not have.
std::string escaped(std::string_view text, std::string_view others);

// For messages and log lines: escaped, and cut after `most` bytes of `text`.
std::string printable(std::string_view text, std::size_t most = 80);
std::string in_quotes(std::string_view text, std::size_t most = 80);  // the same in quotes

}  // namespace millrace
