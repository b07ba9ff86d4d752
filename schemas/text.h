// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

// Checks of text from peers, which may be arbitrary bytes. All functions are pure.

bool is_utf8(std::string_view text);
// The number of bytes at the beginning of `text` that are valid UTF-8 characters.
std::size_t utf8_length(std::string_view text);
// The longest beginning of `text` of at most `most` bytes that does not end within a character.
std::string_view cut_text(std::string_view text, std::size_t most);

// True for one JSON value, nested at most this deep, with only white space around it.
bool is_json(std::string_view text, std::size_t depth = 32);
bool is_json_object(std::string_view text, std::size_t depth = 32);

// The characters that a JSON string stands for. Requires: `string` is a JSON string, with its
// quotes.
std::string string_value(std::string_view string);
// The same for a JSON value of any kind; empty if it is no string.
std::string string_in(std::string_view value);

// A code point and its number of bytes in UTF-8. Size 0: `text` does not begin with a valid
// character.
struct Character {
  std::size_t size = 0;
  char32_t code = 0;
};
// Requires: `text` is not empty.
Character first_character(std::string_view text);

// False for control characters: those of ASCII, U+0080 to U+009F (U+009B begins terminal commands),
// and characters that change the direction of text or end a line.
bool is_printable(char32_t code);

// True for valid UTF-8 of printable characters, at most `max_size` bytes: suitable for a log line.
bool is_printable(std::string_view text, std::size_t max_size);

// True for a valid name of a stream or a pipeline: [A-Za-z0-9._-]{1,128}.
bool is_name(std::string_view text);
// True for a valid name of a tenant: [A-Za-z0-9._-]{1,64}, and not a folder of paths, . or ...
bool is_tenant_name(std::string_view text);
// True for the name that a stream has in the service: ID, or TENANT/ID for a tenant other than
// `default`.
bool is_stream_name(std::string_view text);
// The parts of such a name: ID, which its client knows; and TENANT, or empty.
std::string_view id_in(std::string_view stream_name);
std::string_view tenant_in(std::string_view stream_name);

// The text as one word of a shell's command.
std::string shell_quoted(std::string_view text);
// A path as one word of a shell's command, which no program takes for an option, a command or
// an address.
std::string shell_path(std::string_view path);

}  // namespace millrace
