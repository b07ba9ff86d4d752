// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace millrace {

// Views of memory that the caller keeps alive.
using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

}  // namespace millrace
