// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

struct sf_private_tag;  // libsndfile's SNDFILE

namespace millrace {

// Reads an audio file (WAV, FLAC, Ogg and every other format of libsndfile) from front to back as
// s16 frames, with the file's rate and channels. Errors are sentences without the file's name.
// Confined to one thread.
class AudioFile {
 public:
  static Result<AudioFile, std::string> open(const std::string& path);

  const std::string& path() const { return path_; }
  double rate() const { return rate_; }
  std::uint32_t channels() const { return channels_; }

  // The next frames, at most `most`, with interleaved channels; empty at the end of the file. Valid
  // until the next call.
  Result<std::span<const std::int16_t>, std::string> read(std::size_t most);

 private:
  struct Close {
    void operator()(sf_private_tag* file) const;
  };
  using File = std::unique_ptr<sf_private_tag, Close>;

  AudioFile(std::string path, File file, double rate, std::uint32_t channels);

  std::string path_;
  File file_;
  double rate_;
  std::uint32_t channels_;
  std::vector<float> floats_;
  std::vector<std::int16_t> frames_;
};

}  // namespace millrace
