// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace millrace {

// What a peer calls text may be any bytes; these say what it is. Pure.

bool is_utf8(std::string_view text);
// The length of the whole characters of UTF-8 that `text` begins with.
std::size_t utf8_length(std::string_view text);
// The beginning of `text`, at most `most` bytes of it, which does not end within a character.
std::string_view cut_text(std::string_view text, std::size_t most);

// One JSON value, at most 32 deep, with nothing but white space around it.
bool is_json(std::string_view text);
bool is_json_object(std::string_view text);

// A code point of UTF-8 and the bytes that it has; no bytes: `text` begins with none.
struct Character {
  std::size_t size = 0;
  char32_t code = 0;
};
// Requires: `text` is not empty.
Character first_character(std::string_view text);

// False for control characters: those of ASCII, those up to U+009F (U+009B begins commands to a
// terminal), and those that change the direction or the line of what follows.
bool is_printable(char32_t code);

// What may stand in a log line: UTF-8 of printable characters.
bool is_printable(std::string_view text, std::size_t max_size);

// The name of a stream or a pipeline: [A-Za-z0-9._-]{1,128}.
bool is_name(std::string_view text);

}  // namespace millrace
