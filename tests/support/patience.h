// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace millrace {

// How long a test waits for what must come until it counts as failed; nothing depends on how fast
// anything is.
inline constexpr std::chrono::seconds patience{30};

}  // namespace millrace
