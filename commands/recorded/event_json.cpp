// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/event_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <variant>

#include "base/enum_names.h"
#include "schemas/json_text.h"
#include "schemas/text.h"
#include "streams/stats/stats.h"
#include "transport/base64/base64.h"

namespace millrace::recordings {
namespace {

void append_member(std::string& line, std::string_view name, std::uint64_t value) {
  append_number(line.append(",\"").append(name).append("\":"), value);
}

void append_word(std::string& line, std::string_view begin, std::string_view word) {
  line.append(begin).append("\"").append(word).append("\"");
}

// Nanoseconds as seconds, exactly.
void append_seconds(std::string& line, std::int64_t nanoseconds) {
  if (nanoseconds < 0) line += '-';
  const auto all = nanoseconds < 0 ? 0 - static_cast<std::uint64_t>(nanoseconds)
                                   : static_cast<std::uint64_t>(nanoseconds);
  constexpr std::uint64_t second = 1'000'000'000;
  append_number(line, all / second);
  if (all % second == 0) return;
  std::string decimals = std::to_string(second + all % second);
  decimals.front() = '.';
  line += decimals.substr(0, decimals.find_last_not_of('0') + 1);
}

// Valid even if the file is not from a service: a name for any number.
std::string_view closing_name(std::uint8_t closing) {
  return closing < count_of<StreamClosing>() ? name_of(static_cast<StreamClosing>(closing))
                                             : "unknown";
}

void append(std::string& line, const recording::RecordedEvent& read, std::int64_t opened_steady) {
  append_word(line, R"("event":)", name_of(read.event.kind));
  append_member(line, "count", read.event.count);
  append_word(line, R"(,"cause":)", name_of(read.event.cause));
  if (read.event.mark)
    append_member(line, "mark", *read.event.mark);
  else
    line += R"(,"mark":null)";
  if (read.event.opened_anew()) append_member(line, "rows", read.event.rows);
  append_member(line, "position", read.position);
  append_seconds(line += R"(,"at":)", to_wire(read.at) - opened_steady);
  if (!read.text.empty()) append_json(line += R"(,"data":)", read.text);
}

void append_data(std::string& line, Answer::Kind kind, std::string_view data) {
  line += R"(,"data":)";
  if (kind == Answer::Kind::json)
    append_json(line, data);
  else if (kind == Answer::Kind::bytes)
    append_word(line, "", base64(data));
  else
    append_string(line, data);
}

void append(std::string& line, const recording::RecordedAnswer& answer, std::int64_t) {
  append_word(line, R"("answer":)", name_of(answer.kind));
  append_member(line, "seq", answer.seq);
  append_member(line, "batch", number(answer.batch));
  append_data(line, answer.kind, answer.data);
}

void append(std::string& line, const recording::RecordedMessage& message, std::int64_t) {
  append_word(line, R"("message":)", name_of(message.kind));
  append_member(line, "seq", message.seq);
  append_member(line, "number", message.number);
  append_data(line, message.kind, message.data);
}

void append(std::string& line, const recording::StreamTotals& totals, std::int64_t) {
  append_word(line, R"("closed":)", closing_name(totals.closing));
  line += totals.complete ? R"(,"complete":true)" : R"(,"complete":false)";
  append_member(line, "rows", totals.rows);
  append_member(line, "frames", totals.frames);
  append_member(line, "lost", totals.lost);
  std::array<char, 8> digits;
  digits.fill('0');
  std::array<char, 8> hex;
  const auto end = std::to_chars(hex.data(), hex.data() + hex.size(), totals.digest, 16).ptr;
  std::copy(hex.data(), end, digits.data() + digits.size() - (end - hex.data()));
  append_word(line, R"(,"digest":)", std::string_view(digits.data(), digits.size()));
}

}  // namespace

std::string_view array_of(std::size_t kind) {
  constexpr std::array<std::string_view, std::variant_size_v<recording::RecordedItem>> names{
      "events", "answers", "messages", "totals"};
  static_assert(!names.back().empty());
  return names[kind];
}

void append_item(std::string& line, const recording::RecordedItem& item,
                 std::int64_t opened_steady) {
  line += '{';
  std::visit([&](const auto& one) { append(line, one, opened_steady); }, item);
  line += '}';
}

void append_missing(std::string& line, const recording::MissingPart& part) {
  append_number(line += R"("begin":)", part.begin);
  append_member(line, "end", part.end);
  append_member(line, "events", part.events);
  append_string(line += R"(,"why":)", part.why);
}

void append_json(std::string& line, std::string_view text) {
  if (text.empty()) {
    line += "null";
  } else if (is_json(text)) {
    append_in_line(line, text);
  } else {
    append_string(line, text);
  }
}

}  // namespace millrace::recordings
