// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/enum_names.h"

namespace millrace {

// Why a batch closed.
enum class Trigger : std::uint8_t {
  full,      // it has the most rows that it may have, which is one for a suspect
  complete,  // every open stream of the lane is in it
  deadline,  // its oldest row has been ready for max_wait
  drain,     // no further rows will come
};

}  // namespace millrace
