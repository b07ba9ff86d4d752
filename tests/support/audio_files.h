// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sndfile.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace {

// The format of an audio file that a test writes: a type and a subtype of libsndfile.
struct WrittenFormat {
  int format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  int rate = 16000;
  int channels = 1;
};

// Writes interleaved values (std::int16_t or float) as an audio file.
template <class Value>
void write_audio(const std::string& path, const std::vector<Value>& values,
                 const WrittenFormat& to = {}) {
  SF_INFO format{};
  format.samplerate = to.rate;
  format.channels = to.channels;
  format.format = to.format;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &format);
  if (file == nullptr) throw std::runtime_error(path + ": " + sf_strerror(nullptr));
  const auto frames = static_cast<sf_count_t>(values.size()) / to.channels;
  sf_count_t written = 0;
  if constexpr (std::is_same_v<Value, std::int16_t>)
    written = sf_writef_short(file, values.data(), frames);
  else
    written = sf_writef_float(file, values.data(), frames);
  sf_close(file);
  if (written != frames) throw std::runtime_error(path + ": not written");
}

// `count` values that differ from file to file.
inline std::vector<std::int16_t> noise(std::size_t count, std::uint32_t seed) {
  std::vector<std::int16_t> values(count);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::int16_t& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<std::int16_t>(state >> 16);
  }
  return values;
}

}  // namespace millrace
