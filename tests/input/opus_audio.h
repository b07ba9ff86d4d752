// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <opus/opus.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "input/client_format.h"

namespace millrace::test {

inline ClientFormat opus(std::uint32_t channels = 1, ChannelChoice choice = AllChannels{}) {
  return {.format = SampleFormat::opus, .values = channels, .rate = 48000, .channel = choice};
}

using Packet = std::vector<std::byte>;

// `count` packets of 48 kHz with a tone and noise, each of `ms` ms: 2.5 to 60.
inline std::vector<Packet> opus_packets(std::size_t count, double ms = 20, int channels = 1) {
  const std::unique_ptr<OpusEncoder, void (*)(OpusEncoder*)> encoder(
      opus_encoder_create(48000, channels, OPUS_APPLICATION_AUDIO, nullptr), opus_encoder_destroy);
  const auto frames = static_cast<std::size_t>(48 * ms);
  std::vector<float> audio(frames * static_cast<std::size_t>(channels));
  std::mt19937 random(11);
  std::vector<Packet> packets;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < audio.size(); ++k)
      audio[k] = 0.4f * std::sin(static_cast<float>(i * audio.size() + k) * 0.02f) +
                 std::uniform_real_distribution<float>(-0.05f, 0.05f)(random);
    Packet packet(4000);
    const opus_int32 size = opus_encode_float(encoder.get(), audio.data(), static_cast<int>(frames),
                                              reinterpret_cast<unsigned char*>(packet.data()),
                                              static_cast<opus_int32>(packet.size()));
    packet.resize(static_cast<std::size_t>(size));
    packets.push_back(packet);
  }
  return packets;
}

// The floats of a new decoder for these packets.
inline std::vector<float> decoded(const std::vector<Packet>& packets, int rate, int channels = 1) {
  const std::unique_ptr<OpusDecoder, void (*)(OpusDecoder*)> decoder(
      opus_decoder_create(rate, channels, nullptr), opus_decoder_destroy);
  std::vector<float> all, piece(5760 * 2);
  for (const Packet& packet : packets) {
    const int frames =
        opus_decode_float(decoder.get(), reinterpret_cast<const unsigned char*>(packet.data()),
                          static_cast<opus_int32>(packet.size()), piece.data(), 5760, 0);
    all.insert(all.end(), piece.begin(), piece.begin() + frames * channels);
  }
  return all;
}

}  // namespace millrace::test
