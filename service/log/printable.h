// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

// `text` with escapes for characters that are not printable and for each character of `others`. The
// escapes are those of TOML, and \xff (which TOML does not have) for a byte that is not UTF-8.
std::string escaped(std::string_view text, std::string_view others);

// For messages and log lines: escapes `text`, and cuts it after `most` bytes.
std::string printable(std::string_view text, std::size_t most = 80);
std::string in_quotes(std::string_view text, std::size_t most = 80);  // printable(), in quotes

}  // namespace millrace
