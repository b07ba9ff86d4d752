// SPDX-License-Identifier: Apache-2.0
#include "commands/streaming/stream_output.h"

#include <algorithm>
#include <ostream>
#include <utility>
#include <variant>

#include "schemas/text.h"

namespace millrace {
namespace {

// With spaces for characters that could control the terminal: neither workers nor names of files
// are trusted.
std::string harmless(std::string_view text) {
  std::string printed;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t size = std::max<std::size_t>(1, character.size);
    if (character.size > 0 && is_printable(character.code))
      printed += text.substr(0, size);
    else
      printed += ' ';
    text.remove_prefix(size);
  }
  return printed;
}

// Columns on a terminal. Characters that may be wide count twice.
std::size_t columns_of(std::string_view character) {
  constexpr char32_t first_wide = 0x1100;
  return first_character(character).code < first_wide ? 1 : 2;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    width += columns_of(text);
    text.remove_prefix(std::max<std::size_t>(1, first_character(text).size));
  }
  return width;
}

// The end of a text that fits into `columns`.
std::string_view fitting(std::string_view text, std::size_t columns) {
  std::size_t begin = text.size(), used = 0;
  while (begin > 0) {
    std::size_t at = begin - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
    used += columns_of(text.substr(at));
    if (used > columns) break;
    begin = at;
  }
  return text.substr(begin);
}

}  // namespace

bool StreamOutput::print(const ClientEvent& event, const Source& source, std::string_view line) {
  if (const auto* result = look_.json ? nullptr : std::get_if<client_event::Result>(&event)) {
    // The text there gets no final one any more: the model has lost it, or the worker gave none.
    const bool failed = result->answer.kind == Answer::Kind::error;
    if (failed || (result->flags & (flag::reset | flag::segment)) != 0) keep_text(source.stream);
    if (result->answer.kind == Answer::Kind::json) {
      const bool is_last = (result->flags & flag::last) != 0;
      if (const auto transcript = parse_transcript(result->answer.data, is_last))
        return print_text(*transcript, source);
    }
  }
  if (std::holds_alternative<client_event::Closed>(event)) return print_end(source, line);
  return print_line(line);
}

bool StreamOutput::print_end(const Source& source, std::string_view line) {
  keep_text(source.stream);
  return print_line(line);
}

void StreamOutput::keep_text(std::uint64_t stream) {
  const auto found = open_.find(stream);
  if (found == open_.end()) return;
  hide_text();
  console_.out << found->second.head << found->second.text << '\n';
  open_.erase(found);
}

void StreamOutput::print_problem(std::string_view line) {
  hide_text();
  console_.out.flush();
  console_.err << line << std::endl;
  show_text();
  console_.out.flush();
}

bool StreamOutput::print_line(std::string_view line) {
  hide_text();
  console_.out << line << '\n';
  show_text();
  return static_cast<bool>(console_.out.flush());
}

bool StreamOutput::print_text(const Transcript& transcript, const Source& source) {
  const std::string text = harmless(transcript.text);
  const std::string head = look_.named ? harmless(source.name) + ": " : "";
  hide_text();
  open_.erase(source.stream);
  if (transcript.final && !text.empty()) console_.out << head << text << '\n';
  if (!transcript.final && !text.empty() && console_.columns > 0) {
    open_[source.stream] = {head, text};
    newest_ = source.stream;
  }
  show_text();
  return static_cast<bool>(console_.out.flush());
}

void StreamOutput::hide_text() {
  if (std::exchange(shown_, false)) console_.out << "\r\x1b[K";
}

void StreamOutput::show_text() {
  if (open_.empty()) return;
  const auto newest = open_.find(newest_);
  const auto& [head, text] = (newest == open_.end() ? open_.begin() : newest)->second;
  const std::size_t columns = std::max<std::size_t>(console_.columns, 3) - 1;
  // A name that leaves little room is cut with the text.
  const std::size_t before = width_of(head) < columns / 2 ? width_of(head) : 0;
  const std::string line = before > 0 ? text : head + text;
  if (before > 0) console_.out << head;
  if (width_of(line) <= columns - before)
    console_.out << line;
  else
    console_.out << "…" << fitting(line, columns - before - 2);
  shown_ = true;
}

}  // namespace millrace
