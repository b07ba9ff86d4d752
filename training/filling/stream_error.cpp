// SPDX-License-Identifier: Apache-2.0
#include "training/filling/stream_error.h"

#include "base/enum_names.h"
#include "schemas/json_text.h"
#include "schemas/text.h"

namespace millrace::training {

namespace {

constexpr std::size_t longest_line = 4000;  // bytes; the limit of a Refused is 4096

// `keeps_bytes`: bytes that are not UTF-8 stay.
std::string line_of(std::string_view text, bool keeps_bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string line;
  while (!text.empty() && line.size() < longest_line) {
    const Character next = first_character(text);
    const std::size_t size = next.size == 0 ? 1 : next.size;
    const auto byte = static_cast<unsigned char>(text.front());
    if (next.size == 0 && keeps_bytes)
      line += text.front();
    else if (next.size == 0)
      line.append({'\\', 'x', digits[byte >> 4], digits[byte & 15]});
    else if (is_printable(next.code))
      line += text.substr(0, size);
    else
      line += ' ';
    text.remove_prefix(size);
  }
  return line;
}

}  // namespace

void forget_old(FailedStreams& streams, std::uint64_t epoch) {
  std::erase_if(streams, [&](const auto& failed) { return failed.first.epoch + 1 < epoch; });
}

void add_failed(FailedStreams& streams, const std::vector<DataError>& failed) {
  if (!failed.empty()) forget_old(streams, failed.front().epoch);
  for (const DataError& error : failed)
    streams.insert_or_assign({error.epoch, error.stream, error.copy},
                             FailedStream{error.frame, error.good, error.error});
}

std::string printable_line(std::string_view text) { return line_of(text, false); }

std::string to_json(const DataError& error) {
  std::string text = "{\"stream\":" + std::to_string(error.stream) + ",\"name\":";
  append_file_name(text, line_of(error.name, true));
  text += ",\"message\":";
  append_file_name(text, line_of(error.error.message, true));
  return text + ",\"fault\":\"" + std::string(name_of(error.error.fault)) +
         "\",\"epoch\":" + std::to_string(error.epoch) + ",\"step\":" + std::to_string(error.step) +
         "}";
}

}  // namespace millrace::training
