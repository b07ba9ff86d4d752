// SPDX-License-Identifier: Apache-2.0
#include "transport/access/token_list.h"

#include <algorithm>
#include <unordered_set>

#include "base/files/small_file.h"

namespace millrace {
namespace {

constexpr std::size_t longest_name = 128;
constexpr std::string_view space = " \t\r";

// Removes the first word of the text, and returns it; empty if the text has only spaces.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
  const auto word = text.substr(0, text.find_first_of(space));
  text.remove_prefix(word.size());
  return word;
}

bool is_token_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_name &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127; });
}

}  // namespace

// The errors do not repeat the line: it may have a token by mistake.
Result<TokenList, std::string> TokenList::parse(std::string_view text) {
  TokenList list;
  std::unordered_set<std::string> names, digests;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto wrong = [&](std::string_view what) {
      return "line " + std::to_string(number) + ": " + std::string(what);
    };
    const std::string_view hex = take_word(line);
    if (hex.empty() || hex.starts_with('#')) continue;
    const std::string_view name = take_word(line);
    const auto digest = from_hex(hex);
    if (!digest || !is_token_name(name) || !take_word(line).empty())
      return wrong(
          "must be the SHA-256 of a token in 64 hexadecimal digits, a space, and a name of 1 to "
          "128 printable characters without spaces, as millrace token new prints it");
    if (!digests.insert(to_hex(*digest)).second) return wrong("another line has the same token");
    if (!names.emplace(name).second) return wrong("another line has the same name");
    list.names_.emplace_back(*digest, name);
  }
  std::ranges::sort(list.names_);
  return list;
}

Result<TokenList, std::string> TokenList::read(const std::string& path) {
  const auto text = read_small_file(path, 16 << 20);
  if (!text) return text.error();
  return parse(*text);
}

// The time of the search depends on the digest only, and no client can choose a digest.
std::optional<std::string_view> TokenList::accepts(const TokenDigest& digest) const {
  const auto found = std::ranges::lower_bound(
      names_, digest, {}, [](const auto& one) -> auto& { return one.first; });
  if (found == names_.end() || found->first != digest) return std::nullopt;
  return found->second;
}

}  // namespace millrace
