// SPDX-License-Identifier: Apache-2.0
#include "load/protocols/received_result.h"

#include <charconv>

namespace millrace::load {

namespace {

bool skip(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

bool skip_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

// `text`: without the last brace.
std::optional<ReceivedResult> read_members(std::string_view text) {
  ReceivedResult result;
  if (skip(text, R"({"type":"result","seq":)") && skip_number(text, result.seq) &&
      skip(text, R"(,"begin":)") && skip_number(text, result.begin) && skip(text, R"(,"end":)") &&
      skip_number(text, result.end)) {
    const auto flags = text.find(']');
    if (flags == text.npos) return std::nullopt;
    result.gap = text.substr(0, flags).find(R"("GAP")") != text.npos;
    text.remove_prefix(flags);
    result.failed = !skip(text, R"(],"data":)");
    if (!result.failed) result.data = text;
    return result;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ReceivedResult> read_result(std::string_view text) {
  return text.ends_with('}') ? read_members(text.substr(0, text.size() - 1)) : std::nullopt;
}

// The answer may contain anything, but only numbers follow the number of the message.
std::optional<NumberedResult> read_numbered_result(std::string_view text) {
  constexpr std::string_view name = R"(,"n":)";
  const auto at = text.rfind(name);
  if (at == text.npos) return std::nullopt;
  std::string_view rest = text.substr(at + name.size());
  MessageNumber number;
  if (!skip_number(rest, number.n)) return std::nullopt;
  if (skip(rest, R"(,"ack":[)")) {
    ResumePoint& point = number.point.emplace();
    if (!skip_number(rest, point.seq) || !skip(rest, ",") || !skip_number(rest, point.frames) ||
        !skip(rest, ",") || !skip_number(rest, point.commands) || !skip(rest, ",") ||
        !skip_number(rest, point.begin) || !skip(rest, ",") || !skip_number(rest, point.skip) ||
        !skip(rest, "]"))
      return std::nullopt;
  }
  const auto result = rest == "}" ? read_members(text.substr(0, at)) : std::nullopt;
  return result ? std::optional(NumberedResult{*result, number}) : std::nullopt;
}

}  // namespace millrace::load
