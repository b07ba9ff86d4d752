// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace millrace {

// How a client writes the frames of a source.
struct PcmFormat {
  std::string_view name = "s16le";  // of docs/protocol.md: s16le or f32le
  double rate = 0;                  // frames per second
  std::uint32_t channels = 1;

  std::size_t frame() const { return channels * (name == "f32le" ? 4u : 2u); }  // bytes of one
};

// Audio that `stream` sends as one stream, from front to back. Errors are sentences without the
// source's name. Confined to one thread.
class AudioSource {
 public:
  virtual ~AudioSource() = default;

  virtual const PcmFormat& format() const = 0;

  // The next frames, at most `most`; empty at the end. Nothing if they have not come yet: then
  // descriptor() is readable once there is more. Valid until the next call.
  virtual Result<std::optional<Bytes>, std::string> read(std::size_t most) = 0;
  virtual int descriptor() const { return -1; }
};

// Opens what a user names: an audio file that libsndfile reads, or "-", standard input, which has
// to be WAV. If `raw` is given, either is raw PCM of that format. Standard input is sent as it
// comes. Waits for the header of a WAV stream.
Result<std::unique_ptr<AudioSource>, std::string> open_audio(const std::string& path,
                                                             const std::optional<PcmFormat>& raw);

}  // namespace millrace
