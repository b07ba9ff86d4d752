// SPDX-License-Identifier: Apache-2.0
#include "service/log/printable.h"

#include <cstdio>

#include "schemas/text.h"

namespace millrace {

std::string escaped(std::string_view text, std::string_view others) {
  std::string out;
  char code_text[16];
  while (!text.empty()) {
    const auto [size, code] = first_character(text);
    if (size > 0 && is_printable(code)) {
      if (others.find(text[0]) != others.npos) out += '\\';
      out += text.substr(0, size);
    } else if (size > 0) {
      std::snprintf(code_text, sizeof code_text, "\\u%04x", static_cast<unsigned>(code));
      out += code_text;
    } else {
      std::snprintf(code_text, sizeof code_text, "\\x%02x", static_cast<unsigned char>(text[0]));
      out += code_text;
    }
    text.remove_prefix(size > 0 ? size : 1);
  }
  return out;
}

std::string printable(std::string_view text, std::size_t most) {
  if (text.size() <= most) return escaped(text, "\"\\");
  return escaped(cut_text(text, most), "\"\\") + "...";
}

std::string in_quotes(std::string_view text, std::size_t most) {
  return '"' + printable(text, most) + '"';
}

}  // namespace millrace
