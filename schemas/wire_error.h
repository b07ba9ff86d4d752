// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/enum_names.h"

namespace millrace {

// Why bytes are not a valid message.
enum class WireError : std::uint8_t {
  too_long,   // longer than the limit
  malformed,  // not a FlatBuffer of this schema: too short, wrong identifier, a bad offset
  unknown,    // a message of a later version, or one that this end must not receive
  meaning,    // a value out of its range, inconsistent counts, text that is not UTF-8
};

}  // namespace millrace
