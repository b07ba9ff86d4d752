// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/event.h"
#include "base/stats.h"
#include "input/endpoint_rule.h"

namespace millrace {

enum class RowKind : std::uint8_t {
  full,    // a body of the size of the rule
  cut,     // shorter: at the end of a segment
  marker,  // without frames
};

// A change of a stream's chunk size.
enum class SizeChange : std::uint8_t { up, down };

// How streams are cut. Written by one thread.
struct CutStats {
  Labelled<Counter, RowKind> rows;
  Labelled<Counter, ResetReason> resets;        // rows with RESET; never `none`
  Labelled<Counter, EndpointReason> endpoints;  // endpoints that took effect
  Counter endpoints_late;                       // endpoints of workers without effect
  Labelled<Counter, SizeChange> size_changes;
};

}  // namespace millrace
