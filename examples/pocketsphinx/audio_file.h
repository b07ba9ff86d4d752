// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::pocketsphinx {

// Returns the samples of an audio file. Throws std::runtime_error if it cannot be read, or is not
// mono at sample_rate.
std::vector<std::int16_t> read_audio(const std::string& path);

}  // namespace millrace::pocketsphinx
