// SPDX-License-Identifier: Apache-2.0
#include "training/serving/refusals.h"

#include "base/enum_names.h"
#include "schemas/json_text.h"
#include "schemas/text.h"

namespace millrace::training {

namespace wp = worker_protocol;

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

wp::Refused refusal_of(const DataError& error) {
  const std::string name = printable_line(error.name);
  wp::Refused refused;
  refused.code = "data";
  refused.message = printable_line("stream " + std::to_string(error.stream) + " \"" + name +
                                   "\": " + error.error.message);
  refused.details = "{\"stream\":" + std::to_string(error.stream) + ",\"name\":";
  append_string(refused.details, name);
  refused.details += ",\"message\":";
  append_string(refused.details, printable_line(error.error.message));
  refused.details += ",\"fault\":\"" + std::string(name_of(error.error.fault)) +
                     "\",\"epoch\":" + std::to_string(error.epoch) +
                     ",\"step\":" + std::to_string(error.step) + "}";
  return refused;
}

std::string place_text(const wp::TrainerHello& trainer) {
  std::string text = "rank " + std::to_string(trainer.rank) + " of " +
                     std::to_string(trainer.world) + " from epoch " +
                     std::to_string(trainer.epoch) + ", step " + std::to_string(trainer.step);
  if (trainer.stride > 1) text += ", every " + std::to_string(trainer.stride) + " steps";
  return text;
}

}  // namespace millrace::training
