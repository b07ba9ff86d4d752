// SPDX-License-Identifier: Apache-2.0
#include "training/filling/stream_error.h"

#include "base/enum_names.h"
#include "schemas/json_text.h"
#include "schemas/text.h"

namespace millrace::training {

namespace {

constexpr std::size_t longest_line = 4000;  // bytes; the limit of a Refused is 4096

}  // namespace

std::string printable_line(std::string_view text) {
  std::string line;
  while (!text.empty() && line.size() < longest_line) {
    const Character next = first_character(text);
    const std::size_t size = next.size == 0 ? 1 : next.size;
    if (next.size == 0)
      line += '?';
    else if (is_printable(next.code))
      line += text.substr(0, size);
    else
      line += ' ';
    text.remove_prefix(size);
  }
  return line;
}

std::string to_json(const DataError& error) {
  std::string text = "{\"stream\":" + std::to_string(error.stream) + ",\"name\":";
  append_string(text, printable_line(error.name));
  text += ",\"message\":";
  append_string(text, printable_line(error.error.message));
  return text + ",\"fault\":\"" + std::string(name_of(error.error.fault)) +
         "\",\"epoch\":" + std::to_string(error.epoch) + ",\"step\":" + std::to_string(error.step) +
         "}";
}

}  // namespace millrace::training
