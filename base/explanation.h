// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/instants.h"
#include "base/trigger.h"

namespace millrace {

// The place of a row in the batch in which it was done.
struct RowPlace {
  BatchId batch{};
  Slot slot{};
  std::uint32_t rows = 0;  // of the batch, with frames
  Trigger trigger = Trigger::full;
};

// Where the time of a row went, for a client that asked with `explain=1`.
struct Explanation {
  RowPlace place;
  Instants at;  // up to `done`
};

}  // namespace millrace
