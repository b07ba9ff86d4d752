// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "service/commands/input/audio_source.h"

namespace millrace {

// The header of a WAV stream.
struct WavHeader {
  AudioFormat format;
  std::uint64_t bytes = 0;  // size of the frames; the largest number if the header does not have it
};

// Reads a header from a descriptor and nothing after it, without seeking, so that a pipe works too.
// Blocks until it has arrived. An error has the format of the stream and the supported formats.
Result<WavHeader, std::string> read_wav_header(int descriptor);

}  // namespace millrace
