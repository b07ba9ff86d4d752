// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::recording {

// In EventEntry: the number is in Slice.large.
inline constexpr std::uint64_t large_number = (std::uint64_t{1} << 48) - 1;

}  // namespace millrace::recording
