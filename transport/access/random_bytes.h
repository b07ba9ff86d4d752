// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace millrace {

// Fills the memory with random bytes for secrets. Throws std::runtime_error if the system
// has no randomness.
void fill_random(std::span<std::uint8_t> bytes);

// The name of a new stream, and the number of an opening of it (ResumeToken). Both throw as
// fill_random().
StreamKey new_stream_key();
std::uint32_t new_opening();

}  // namespace millrace
