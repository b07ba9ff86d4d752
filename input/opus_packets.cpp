// SPDX-License-Identifier: Apache-2.0
#include "input/opus_packets.h"

#include <opus/opus.h>

#include <cassert>
#include <limits>
#include <new>

#include "input/value_kernels.h"

namespace millrace {

std::uint32_t OpusPackets::rate_for(double wanted) {
  for (const std::uint32_t rate : {8000u, 12000u, 16000u, 24000u})
    if (wanted == rate) return rate;
  return 48000;
}

std::size_t OpusPackets::bytes(std::uint32_t channels) {
  return static_cast<std::size_t>(opus_decoder_get_size(static_cast<int>(channels)));
}

void OpusPackets::Destroy::operator()(OpusDecoder* decoder) const { opus_decoder_destroy(decoder); }

OpusPackets::OpusPackets(std::uint32_t rate, std::uint32_t channels)
    : rate_(rate), channels_(channels), frames_of_packet_(rate / 50) {
  assert(channels == 1 || channels == 2);
  decoder_.reset(
      opus_decoder_create(static_cast<opus_int32>(rate), static_cast<int>(channels), nullptr));
  if (!decoder_) throw std::bad_alloc();
}

std::optional<std::span<const float>> OpusPackets::decode(Bytes packet, Decoded& to) {
  if (packet.size() > std::numeric_limits<opus_int32>::max()) return std::nullopt;
  const auto* bytes = reinterpret_cast<const unsigned char*>(packet.data());
  const auto size = static_cast<opus_int32>(packet.size());
  const int in_header = opus_packet_get_nb_samples(bytes, size, static_cast<opus_int32>(rate_));
  if (in_header <= 0) return std::nullopt;
  frames_of_packet_ = static_cast<std::uint64_t>(in_header);
  const int frames =
      opus_decode_float(decoder_.get(), bytes, size, to.data(), static_cast<int>(most_frames()), 0);
  if (frames <= 0) return std::nullopt;
  const auto decoded = std::span(to).first(static_cast<std::size_t>(frames) * channels_);
  if (!all_finite(SampleFormat::f32le, std::as_bytes(decoded))) return std::nullopt;
  return decoded;
}

void OpusPackets::begin_anew() { opus_decoder_ctl(decoder_.get(), OPUS_RESET_STATE); }

}  // namespace millrace
