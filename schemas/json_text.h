// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

// JSON written into a string that is used again and again: nothing is allocated once it is long
// enough.

void append_number(std::string& out, std::uint64_t value);
void append_number(std::string& out, double value);  // the shortest that reads back the same

// Quoted and escaped. What is not UTF-8 stays so.
void append_string(std::string& out, std::string_view text);

// The names of a row's markers, in the order of their bits: ["START","RESET"].
void append_flags(std::string& out, std::uint8_t flags);
// The bit of one of them; 0 for what is none.
std::uint8_t flag_named(std::string_view name);

}  // namespace millrace
