// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

// JSON written into a string that is used again and again, and checked without building a value:
// neither allocates once the string is long enough.

void append_number(std::string& out, std::uint64_t value);
void append_number(std::string& out, double value);  // the shortest that reads back the same

// Quoted and escaped. What is not UTF-8 stays so; see is_json.
void append_string(std::string& out, std::string_view text);

// One JSON value in UTF-8, at most 64 deep, nothing but whitespace around it.
bool is_json(std::string_view text);
bool is_json_object(std::string_view text);

}  // namespace millrace
