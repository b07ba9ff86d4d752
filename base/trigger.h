// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

// Why a batch closed.
enum class Trigger : std::uint8_t {
  full,      // it has as many rows as it may have; that of a suspect may have one
  complete,  // every open stream of the lane is in it
  deadline,  // its oldest row has been ready for max_wait
  drain,     // nothing more is to come
};
inline constexpr int triggers = 4;

constexpr std::string_view name_of(Trigger trigger) {
  constexpr std::string_view names[triggers] = {"full", "complete", "deadline", "drain"};
  return names[static_cast<int>(trigger)];
}

}  // namespace millrace
