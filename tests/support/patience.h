// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace millrace {

// The time that a test waits for an expected event until it fails. No result depends on speed.
inline constexpr std::chrono::seconds patience{30};

}  // namespace millrace
