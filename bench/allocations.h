// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::bench {

// Calls of operator new in this program so far. Linking allocations.cpp replaces the operator.
// Confined to one thread.
std::uint64_t allocations();

}  // namespace millrace::bench
