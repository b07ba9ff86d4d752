// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/audio_file.h"

#include <sndfile.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "examples/pocketsphinx/decoder.h"

namespace millrace::pocketsphinx {

std::vector<std::int16_t> read_audio(const std::string& path) {
  SF_INFO format{};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file(sf_open(path.c_str(), SFM_READ, &format),
                                                         sf_close);
  if (!file) throw std::runtime_error(path + ": " + sf_strerror(nullptr));
  if (format.channels != 1 || format.samplerate != sample_rate)
    throw std::runtime_error(path + ": must be mono at 16000 Hz");
  std::vector<std::int16_t> samples(static_cast<std::size_t>(format.frames));
  const auto read = sf_readf_short(file.get(), samples.data(), format.frames);
  samples.resize(static_cast<std::size_t>(std::max<sf_count_t>(read, 0)));
  return samples;
}

}  // namespace millrace::pocketsphinx
