// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "commands/input/audio_source.h"

struct OpusEncoder;

namespace millrace {

// Encodes a source of s16le or f32le with libopus, in packets of 20 ms. The last packet is padded
// with silence, so that the decoder's output has all audio. Confined to one thread.
class OpusSource final : public AudioSource {
 public:
  // Refuses other formats, rates that libopus does not encode, and more than two channels.
  static OpenedAudio open(std::unique_ptr<AudioSource> raw);

  const AudioFormat& format() const override { return format_; }
  Result<std::optional<Bytes>, std::string> read(std::size_t most) override;
  int descriptor() const override { return raw_->descriptor(); }
  std::string length_notice() const override { return raw_->length_notice(); }

 private:
  struct Destroy {
    void operator()(OpusEncoder* encoder) const;
  };
  using Encoder = std::unique_ptr<OpusEncoder, Destroy>;

  OpusSource(std::unique_ptr<AudioSource> raw, Encoder encoder);
  int encode();

  const std::unique_ptr<AudioSource> raw_;
  const Encoder encoder_;
  const AudioFormat format_;
  const std::size_t packet_;  // frames of raw_
  std::size_t missing_ = 0;   // frames of silence that must follow the audio
  std::vector<std::byte> frames_;
  std::vector<std::byte> encoded_;
};

}  // namespace millrace
