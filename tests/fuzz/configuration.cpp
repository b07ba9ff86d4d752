// SPDX-License-Identifier: Apache-2.0
// A configuration file: either options that print as an equivalent configuration, or a message of
// one line with the place of the fault.
#include <charconv>
#include <string>

#include "schemas/text.h"
#include "service/config/options.h"
#include "service/config/print_options.h"
#include "tests/fuzz/target.h"

namespace millrace {
namespace {

using fuzz::require;

const std::string file = "f.toml";

// A message must be one line of the form `f.toml:LINE: sentence`.
void check_line(std::string_view message, std::string_view text) {
  require(message.starts_with(file + ":"), "a message begins with the file");
  message.remove_prefix(file.size() + 1);
  std::size_t line = 0;
  const char* end = message.data() + message.size();
  const auto [stop, error] = std::from_chars(message.data(), end, line);
  require(error == std::errc{} && end - stop > 2 && stop[0] == ':' && stop[1] == ' ',
          "then the line, and a sentence");
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  require(line >= 1 && line <= static_cast<std::size_t>(lines), "a line of the text");
  require(is_printable(message, 2000), "a message is one printable line");
}

void read(std::string_view text) {
  const auto read = parse_options(text, file);
  if (!read) return check_line(read.error(), text);

  const std::string printed = to_toml(read->options);
  const auto again = parse_options(printed, file);
  require(again.has_value(), "the printed configuration can be read");
  require(again->options == read->options, "and the same one");
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  millrace::read(millrace::fuzz::text_of(bytes, size));
  return 0;
}
