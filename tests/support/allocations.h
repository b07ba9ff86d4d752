// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace millrace::test {

// How often the program has asked for memory. Counts in test binaries that list allocations.cpp.
std::size_t allocations();

}  // namespace millrace::test
