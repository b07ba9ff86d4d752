// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/explanation.h"

namespace millrace {

// The position of a result in its stream, in frames of the pipeline.
struct ResultHead {
  std::uint64_t seq = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  double rate = 16000;     // frames per second
  std::uint8_t flags = 0;  // bit i is the i-th of START RESET SEGMENT GAP LAST END ABORT
  std::optional<Explanation> explanation{};
};

}  // namespace millrace
