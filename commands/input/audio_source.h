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
#include "input/sample_format.h"

namespace millrace {

// The audio of a source, as a client sends it.
struct AudioFormat {
  SampleFormat format = SampleFormat::s16le;
  double rate = 0;  // frames per second
  std::uint32_t channels = 1;

  // 0 for Opus.
  std::size_t frame_bytes() const { return channels * size_of(format); }
};

// Audio that the command `stream` sends as one stream. Errors are sentences without the source's
// name. Confined to one thread.
class AudioSource {
 public:
  virtual ~AudioSource() = default;

  virtual const AudioFormat& format() const = 0;

  // The next frames, at most `most`; for Opus, the next packet. Empty at the end; nullopt if no
  // more have arrived yet. Then descriptor() becomes readable when they do. Valid until the next
  // call.
  virtual Result<std::optional<Bytes>, std::string> read(std::size_t most) = 0;
  virtual int descriptor() const { return -1; }

  // After the end: how its length differs from that in its header. Empty: it does not.
  virtual std::string length_notice() const { return {}; }
};

inline constexpr std::string_view more_than_header =
    "has more audio than its header says, and all of it is sent";

using OpenedAudio = Result<std::unique_ptr<AudioSource>, std::string>;

// Opens an audio file in a format of libsndfile, or standard input ("-"), which must be WAV. With
// `raw`, either is raw audio of that format. Standard input can be sent while it arrives. Blocks
// until the header of a WAV stream has arrived.
OpenedAudio open_audio(const std::string& path, const std::optional<AudioFormat>& raw);

}  // namespace millrace
