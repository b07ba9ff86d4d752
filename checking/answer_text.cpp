// SPDX-License-Identifier: Apache-2.0
#include "checking/answer_text.h"

#include <algorithm>

#include "client/lines/event_lines.h"

namespace millrace::checking {
namespace {

constexpr std::size_t most_shown = 200;   // bytes
constexpr std::size_t shown_before = 40;  // equal bytes before the first one that differs

}  // namespace

std::string text_of(const Answer& answer) {
  std::string text;
  if (answer.kind == Answer::Kind::none) text = "no answer";
  if (answer.kind == Answer::Kind::error) text = "the error: " + answer.data;
  if (text.empty()) {
    append_answer(text, answer);
    text.erase(0, text.find(':') + 1);
  }
  return answer.endpoint ? text + ", and the end of the segment" : text;
}

std::string shown(const std::string& text, std::size_t begin) {
  const auto boundary = [&](std::size_t at) {
    while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u)
      --at;
    return std::min(at, text.size());
  };
  begin = boundary(begin);
  const std::size_t end = boundary(begin + most_shown);
  return (begin > 0 ? "…" : "") + text.substr(begin, end - begin) + (end < text.size() ? "…" : "");
}

std::pair<std::string, std::string> shown(const std::string& one, const std::string& other) {
  const auto equal = static_cast<std::size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
  const std::size_t begin =
      std::max(one.size(), other.size()) > most_shown ? equal - std::min(equal, shown_before) : 0;
  return {shown(one, begin), shown(other, begin)};
}

}  // namespace millrace::checking
