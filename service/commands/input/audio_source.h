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

// The format in which a client sends the frames of a source.
struct PcmFormat {
  std::string_view name = "s16le";  // a format of docs/protocol.md: s16le or f32le
  double rate = 0;                  // frames per second
  std::uint32_t channels = 1;

  std::size_t frame_bytes() const { return channels * (name == "f32le" ? 4u : 2u); }
};

// Audio that the command `stream` sends as one stream. Errors are sentences without the source's
// name. Confined to one thread.
class AudioSource {
 public:
  virtual ~AudioSource() = default;

  virtual const PcmFormat& format() const = 0;

  // The next frames, at most `most`; empty at the end; nullopt if no more have arrived yet. Then
  // descriptor() becomes readable when they do. Valid until the next call.
  virtual Result<std::optional<Bytes>, std::string> read(std::size_t most) = 0;
  virtual int descriptor() const { return -1; }
};

// Opens an audio file in a format of libsndfile, or standard input ("-"), which must be WAV. With
// `raw`, either is raw PCM of that format. Standard input can be sent while it arrives. Blocks
// until the header of a WAV stream has arrived.
Result<std::unique_ptr<AudioSource>, std::string> open_audio(const std::string& path,
                                                             const std::optional<PcmFormat>& raw);

}  // namespace millrace
