// SPDX-License-Identifier: Apache-2.0
#include "transport/http/query_parameters.h"

#include <algorithm>

namespace millrace {

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
      const auto digits = text.substr(i + 1, 2);
      unsigned char byte = 0;
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (digits.size() < 2 || read.ptr != digits.data() + 2) return std::nullopt;
      decoded += static_cast<char>(byte);
      i += 2;
    }
  }
  return decoded;
}

}  // namespace millrace
