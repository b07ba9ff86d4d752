// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/enum_names.h"

namespace millrace {

// Why a batch closed.
enum class Trigger : std::uint8_t {
  full,      // it has as many rows as it may have; that of a suspect may have one
  complete,  // every open stream of the lane is in it
  deadline,  // its oldest row has been ready for max_wait
  drain,     // nothing more is to come
};

}  // namespace millrace
