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

}  // namespace

std::optional<ReceivedResult> read_result(std::string_view text) {
  ReceivedResult result;
  if (skip(text, R"({"type":"result","seq":)") && skip_number(text, result.seq) &&
      skip(text, R"(,"begin":)") && skip_number(text, result.begin) && skip(text, R"(,"end":)") &&
      skip_number(text, result.end)) {
    const auto flags = text.find(']');
    if (flags == text.npos) return std::nullopt;
    result.gap = text.substr(0, flags).find(R"("GAP")") != text.npos;
    text.remove_prefix(flags);
    result.failed = !skip(text, R"(],"data":)");
    if (!result.failed) result.data = text.substr(0, text.size() - 1);
    return result;
  }
  return std::nullopt;
}

}  // namespace millrace::load
