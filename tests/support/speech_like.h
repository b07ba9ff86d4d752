// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace millrace::test {

// Audio that a voice detector takes for speech with every sensitivity: loud noise. A new generator
// gives the same audio.
class SpeechLike {
 public:
  // Appends `frames` frames to `audio`.
  void append(std::vector<std::int16_t>& audio, std::size_t frames) {
    for (; frames > 0; --frames)
      audio.push_back(static_cast<std::int16_t>(static_cast<int>(random_() % 20001) - 10000));
  }

 private:
  std::mt19937 random_{7};
};

}  // namespace millrace::test
