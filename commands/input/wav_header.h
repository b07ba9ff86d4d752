// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "commands/input/audio_source.h"
#include "input/containers/sample_bytes.h"

namespace millrace {

// The header of a WAV stream.
struct WavHeader {
  AudioFormat format;
  SampleBytes samples;
};

// Reads a header from a descriptor and nothing after it, so that a pipe works too: RIFF, RF64, BW64
// or W64. Blocks until it has arrived. An error has the format of the stream and the supported
// formats.
Result<WavHeader, std::string> read_wav_header(int descriptor);

}  // namespace millrace
