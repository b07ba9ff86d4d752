// SPDX-License-Identifier: Apache-2.0
#include "checking/plan/client_messages.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "schemas/json_text.h"

namespace millrace::checking {
namespace {

constexpr std::size_t most_options = 4096;  // bytes, as at a service

const std::string& any_of(const std::vector<std::string>& texts, Draws& draws) {
  return texts[draws.number(texts.size())];
}

// Any kind of JSON value, always below a key: a worker may expect an object.
std::string unknown_message(Draws& draws) {
  const std::string number = std::to_string(draws.number(1000));
  const std::array<std::string, 5> values{number, "\"word " + number + "\"",
                                          "[" + number + ",0.5,null]",
                                          R"({"words":["a","b)" + number + "\"]}", "true"};
  return R"({"check_worker":)" + values[draws.number(values.size())] + "}";
}

// One of two options, so that a change is not the whole.
std::string unknown_options(Draws& draws) {
  const std::string number = std::to_string(draws.number(1000));
  return draws.one_in(2) ? R"({"check_worker":)" + number + "}"
                         : R"({"check_worker_text":"word )" + number + "\"}";
}

// While the frames of the row arrive that no row before it needed.
std::uint64_t draw_position(const Row& row, Draws& draws) {
  return row.has_frames() ? row.begin + row.right + draws.number(row.size) : row.begin;
}

void add_to(CheckedStream& stream, const ClientTexts& texts, Draws& draws) {
  const std::uint32_t last_run = stream.runs().back();
  const auto rows = static_cast<std::uint32_t>(stream.rows().size());
  for (std::uint32_t row = 0; row < rows; ++row)
    // There are few marker rows: each has a message.
    while ((stream.rows()[row].messages.empty() && !stream.rows()[row].row.has_frames()) ||
           draws.one_in(row < last_run ? 4 : 2)) {
      StreamPost message{.text = {}, .set = row < last_run || draws.one_in(2)};
      message.position = stream.rows()[row].messages.empty()
                             ? draw_position(stream.rows()[row].row, draws)
                             : stream.rows()[row].messages.back().position;
      if (message.set)
        message.text = texts.sets.empty() ? unknown_options(draws) : any_of(texts.sets, draws);
      else
        message.text =
            texts.messages.empty() ? unknown_message(draws) : any_of(texts.messages, draws);
      if (message.set &&
          merged_members(stream.options_before(row + 1), {message.text}).size() > most_options)
        return;
      stream.post(row, std::move(message));
    }
}

}  // namespace

void add_client_messages(std::vector<CheckedStream>& streams, const ClientTexts& texts,
                         Draws& draws) {
  std::size_t number = 0;
  for (CheckedStream& stream : streams) {
    const std::string own =
        R"({"check_worker":)" + std::to_string(number) + R"(,"check_worker_text":""})";
    std::vector<std::string_view> changes{own};
    if (!texts.sets.empty() && number > 0 && draws.one_in(2))
      changes.push_back(any_of(texts.sets, draws));
    stream.set_options(merged_members(stream.options_before(0), changes));
    if (number++ > 0) add_to(stream, texts, draws);
  }
}

}  // namespace millrace::checking
