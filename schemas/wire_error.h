// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/enum_names.h"

namespace millrace {

// Why bytes are not a message.
enum class WireError : std::uint8_t {
  too_long,   // longer than a message may be
  malformed,  // not a FlatBuffer of this schema: too short, wrong identifier, a bad offset
  unknown,    // a message that this version does not have, or that this end does not get
  meaning,    // a value out of its range, counts that do not agree, text that is not UTF-8
};

}  // namespace millrace
