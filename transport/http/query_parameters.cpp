// SPDX-License-Identifier: Apache-2.0
#include "transport/http/query_parameters.h"

#include <algorithm>

namespace millrace {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> parameters_of(std::string_view target) {
  const auto mark = target.find('?');
  std::string_view query = mark == target.npos ? "" : target.substr(mark + 1);
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  while (!query.empty()) {
    const auto piece = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), piece.size() + 1));
    if (piece.empty()) continue;
    const auto name = piece.substr(0, piece.find('='));
    pairs.emplace_back(name, piece.substr(std::min(piece.size(), name.size() + 1)));
  }
  return pairs;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

}  // namespace millrace
