// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "service/commands/input/audio_source.h"

namespace millrace {

// What stands in front of the frames of a WAV stream.
struct WavHeader {
  PcmFormat format;
  std::uint64_t bytes = 0;  // of the frames; the largest number if the stream does not say
};

// Reads it off a descriptor, byte by byte behind one another and no further: so a pipe will do.
// Waits. An error says what the stream has, and what would be accepted.
Result<WavHeader, std::string> read_wav_header(int descriptor);

}  // namespace millrace
