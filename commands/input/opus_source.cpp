// SPDX-License-Identifier: Apache-2.0
#include "commands/input/opus_source.h"

#include <opus/opus.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace millrace {
namespace {

constexpr double opus_rate = 48000;
constexpr std::array<int, 5> encoder_rates{8000, 12000, 16000, 24000, 48000};
constexpr std::size_t packets_per_second = 50;
constexpr std::size_t longest_packet = 1276;  // bytes of a packet with one frame

int rate_of(const AudioFormat& format) { return static_cast<int>(std::lround(format.rate)); }

// Empty if libopus can encode the format.
std::string reason_against(const AudioFormat& format) {
  if (std::ranges::count(encoder_rates, rate_of(format)) == 0)
    return "has " + std::to_string(rate_of(format)) +
           " Hz, and Opus encodes 8000, 12000, 16000, 24000 or 48000 Hz: omit --opus";
  if (format.channels > 2)
    return "has " + std::to_string(format.channels) + " channels, and Opus has 1 or 2: omit --opus";
  if (format.format != SampleFormat::s16le && format.format != SampleFormat::f32le)
    return "is " + std::string(name_of(format.format)) + ", and --opus encodes s16le or f32le";
  return {};
}

}  // namespace

void OpusSource::Destroy::operator()(OpusEncoder* encoder) const { opus_encoder_destroy(encoder); }

OpenedAudio OpusSource::open(std::unique_ptr<AudioSource> raw) {
  const AudioFormat& format = raw->format();
  if (std::string reason = reason_against(format); !reason.empty()) return reason;
  int error = OPUS_OK;
  Encoder encoder(opus_encoder_create(rate_of(format), static_cast<int>(format.channels),
                                      OPUS_APPLICATION_AUDIO, &error));
  if (!encoder) return std::string("cannot be encoded: ") + opus_strerror(error);
  return std::unique_ptr<AudioSource>(new OpusSource(std::move(raw), std::move(encoder)));
}

OpusSource::OpusSource(std::unique_ptr<AudioSource> raw, Encoder encoder)
    : raw_(std::move(raw)),
      encoder_(std::move(encoder)),
      format_{.format = SampleFormat::opus, .rate = opus_rate, .channels = raw_->format().channels},
      packet_(static_cast<std::size_t>(rate_of(raw_->format())) / packets_per_second),
      frames_(packet_ * raw_->format().frame_bytes()),
      encoded_(longest_packet) {
  opus_int32 delay = 0;
  opus_encoder_ctl(encoder_.get(), OPUS_GET_LOOKAHEAD(&delay));
  missing_ = static_cast<std::size_t>(delay);
}

Result<std::optional<Bytes>, std::string> OpusSource::read(std::size_t /*most*/) {
  if (missing_ == 0) return std::optional<Bytes>(Bytes());
  const auto frames = raw_->read(packet_);
  if (!frames) return frames.error();
  if (!*frames) return std::optional<Bytes>();
  const Bytes audio = **frames;
  std::ranges::fill(std::ranges::copy(audio, frames_.begin()).out, frames_.end(), std::byte());
  const std::size_t silence = packet_ - audio.size() / raw_->format().frame_bytes();
  missing_ -= std::min(missing_, silence);
  const int bytes = encode();
  if (bytes < 0) return std::string("cannot be encoded: ") + opus_strerror(bytes);
  return std::optional<Bytes>(Bytes(encoded_).first(static_cast<std::size_t>(bytes)));
}

int OpusSource::encode() {
  auto* to = reinterpret_cast<unsigned char*>(encoded_.data());
  const auto most = static_cast<opus_int32>(encoded_.size());
  const int frames = static_cast<int>(packet_);
  if (raw_->format().format == SampleFormat::f32le)
    return opus_encode_float(encoder_.get(), reinterpret_cast<const float*>(frames_.data()), frames,
                             to, most);
  return opus_encode(encoder_.get(), reinterpret_cast<const opus_int16*>(frames_.data()), frames,
                     to, most);
}

}  // namespace millrace
