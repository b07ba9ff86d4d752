// SPDX-License-Identifier: Apache-2.0

#include "training/catalogs/open_catalog.h"

namespace millrace::training {

std::optional<std::string> empty_streams_text(const Catalog& catalog) {
  constexpr std::size_t most_listed = 20;
  std::string names;
  std::uint64_t count = 0;
  for (std::uint64_t stream = 0; stream < catalog.size(); ++stream) {
    if (catalog.frames(stream) > 0) continue;
    if (count++ < most_listed)
      names += (names.empty() ? "\"" : ", \"") + catalog.name(stream) + "\"";
  }
  if (count == 0) return std::nullopt;
  if (count > most_listed) names += " and " + std::to_string(count - most_listed) + " more";
  return std::to_string(count) + " of " + std::to_string(catalog.size()) +
         (count == 1 ? " streams has" : " streams have") +
         " no frames, and will be in no batch: " + names;
}

}  // namespace millrace::training
