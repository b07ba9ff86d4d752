// SPDX-License-Identifier: Apache-2.0
#include "load/clients/told_message.h"

#include <charconv>

namespace millrace::load {

namespace {

bool skip(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

bool take(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

}  // namespace

std::optional<Told> read_told(std::string_view text) {
  Told told;
  if (skip(text, R"({"type":"result","seq":)") && take(text, told.seq) &&
      skip(text, R"(,"begin":)") && take(text, told.begin) && skip(text, R"(,"end":)") &&
      take(text, told.end)) {
    const auto flags = text.find(']');
    if (flags == text.npos) return std::nullopt;
    told.gap = text.substr(0, flags).find(R"("GAP")") != text.npos;
    text.remove_prefix(flags);
    told.failed = !skip(text, R"(],"data":)");
    if (!told.failed) told.data = text.substr(0, text.size() - 1);
    return told;
  }
  return std::nullopt;
}

}  // namespace millrace::load
