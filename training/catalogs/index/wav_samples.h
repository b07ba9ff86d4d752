// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace::training {

// Where the samples of a WAV file are.
struct WavSamples {
  std::uint64_t begin = 0;   // offset in the file, even
  std::uint64_t frames = 0;  // by the header, also if the file ends before
  std::uint32_t channels = 0;
  std::uint32_t rate = 0;
};

// Reads the header of a WAV file. nullopt: it is no WAV file of 16-bit PCM, or its header does not
// have its length.
std::optional<WavSamples> find_wav_samples(const std::string& path);

}  // namespace millrace::training
