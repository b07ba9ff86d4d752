// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::training {

// The names of the streams of a catalog are unique, except in recordings: a client may use its name
// again.

// A name that two streams have.
inline std::optional<std::string_view> repeated_name(std::vector<std::string_view> names) {
  std::ranges::sort(names);
  const auto found = std::ranges::adjacent_find(names);
  return found == names.end() ? std::nullopt : std::optional(*found);
}

// The error. `things`: "files" or "streams".
inline std::string repeated_name_text(std::string_view things, std::string_view name) {
  return "two " + std::string(things) + " have the name \"" + std::string(name) +
         "\"; the names of streams must be unique";
}

}  // namespace millrace::training
