// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

// Functions that append JSON to a string. If the string is reused, nothing is allocated once it is
// long enough.

void append_number(std::string& out, std::uint64_t value);
void append_number(std::string& out, double value);  // shortest form that reads back the same

// Appends `text` quoted and escaped. Does not check that it is UTF-8.
void append_string(std::string& out, std::string_view text);

// As append_string(), for names of files, which need not be UTF-8: a byte that is not is written as
// \udc80 to \udcff, as Python does it (surrogateescape).
void append_file_name(std::string& out, std::string_view bytes);
// JSON with \u0080 to \u00ff in place of such bytes, for parsers that know only whole characters.
std::string without_bytes(std::string_view json);

// Appends the names of a row's markers in the order of their bits: ["START","RESET"].
void append_flags(std::string& out, std::uint8_t flags);
// The bit of a marker's name; 0 for an unknown name.
std::uint8_t flag_named(std::string_view name);

// The members of an object that no change has, then those of the changes: of each name the newest
// value. A name that is also written with other escapes is there twice, with the newest value last.
// The cost is linear in the object, and n log n in the changes. Requires: each is a JSON object, or
// empty.
std::string merged_members(std::string_view object, const std::vector<std::string_view>& changes);

// Appends JSON without newlines. Requires: `text` is a JSON value.
void append_in_line(std::string& out, std::string_view text);

// The value of a member of a JSON object exactly as it was written, every digit included. Empty if
// there is no such member. Does not find a name that is written with escapes. Pure. Requires:
// `object` is a JSON object.
std::string_view member_text(std::string_view object, std::string_view name);

}  // namespace millrace
