// SPDX-License-Identifier: Apache-2.0
#include "load/streams/content.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <random>
#include <span>

namespace millrace::load {

namespace {

// Small enough to stay in the cache of the sender.
constexpr std::size_t noise_bytes = 64 << 10;
constexpr std::size_t stamp_bytes = sizeof(std::int64_t);

// Bytes of an Opus packet: 20 ms at 32 kbit/s. A decoder accepts any content.
constexpr std::size_t opus_packet = 80;
// Its first byte: one frame of 20 ms of CELT with the full band.
std::byte opus_head(std::uint32_t channels) { return std::byte(31 << 3 | (channels == 2 ? 4 : 0)); }

std::size_t frames_in(Duration time, double rate) {
  return static_cast<std::size_t>(std::chrono::duration<double>(time).count() * rate + 0.5);
}

// Random values of these formats, and of the content of an Opus packet, are random bytes.
std::vector<std::byte> noise(SampleFormat format, std::size_t bytes) {
  std::mt19937 random(1);
  std::vector<std::byte> all(bytes);
  if (format != SampleFormat::f32le) {
    std::ranges::generate(all, [&] { return static_cast<std::byte>(random()); });
    return all;
  }
  std::uniform_real_distribution<float> value(-1, 1);
  for (std::size_t at = 0; at + sizeof(float) <= bytes; at += sizeof(float)) {
    const float one = value(random);
    std::memcpy(all.data() + at, &one, sizeof one);
  }
  return all;
}

}  // namespace

Content::Content(const Schedule& schedule, const FrameType& type, const SentAudio& sent)
    : schedule_(schedule),
      comparable_(sent == plain(type)),
      element_(type.features ? Element::f32 : Element::s16),
      frame_bytes_(size_of(sent.format) * type.values),
      packet_frames_(frames_in(schedule.plan().packet, type.rate)),
      sent_frames_(frames_in(schedule.plan().packet, sent.rate)),
      packet_bytes_(sent.is_opus() ? opus_packet : sent_frames_ * frame_bytes_),
      stamped_(comparable_ && !type.features && packet_bytes_ >= stamp_bytes),
      noise_(true),
      first_byte_(sent.is_opus() ? std::optional(opus_head(type.values)) : std::nullopt),
      step_bytes_(std::max<std::size_t>(1, size_of(sent.format))),
      period_(noise_bytes / step_bytes_ + 1) {
  frames_ = noise(sent.format, period_ * step_bytes_ + packet_bytes_);
}

Content::Content(const Schedule& schedule, const FrameType& type, std::vector<std::byte> frames,
                 double rate)
    : schedule_(schedule),
      comparable_(rate == type.rate && !type.features),
      element_(Element::s16),
      frame_bytes_(size_of(element_) * type.values),
      packet_frames_(frames_in(schedule.plan().packet, type.rate)),
      sent_frames_(frames_in(schedule.plan().packet, rate)),
      packet_bytes_(sent_frames_ * frame_bytes_),
      stamped_(false),
      noise_(false),
      step_bytes_(frame_bytes_),
      frames_(std::move(frames)),
      period_(frames_.size() / step_bytes_) {
  assert(period_ >= sent_frames_);
  frames_.resize(period_ * step_bytes_);
  frames_.insert(frames_.end(), frames_.begin(),
                 frames_.begin() + static_cast<std::ptrdiff_t>(packet_bytes_));
}

Bytes Content::frames_of(std::uint32_t client, std::uint64_t packet) const {
  // Noise: two clients of one period (`client / period_`) never send the same, those of two periods
  // rarely. Files: each client begins at another frame, spread by the golden ratio.
  const std::uint32_t spread = client * 2'654'435'769u;
  const std::uint64_t at =
      noise_ ? client * std::uint64_t{7919} + packet * (104'729 + client / period_)
             : (std::uint64_t{spread} * period_ >> 32) + packet * sent_frames_;
  return Bytes(frames_).subspan(at % period_ * step_bytes_, packet_bytes());
}

void Content::write(std::uint32_t client, std::uint64_t packet, MutableBytes bytes) const {
  const Bytes frames = frames_of(client, packet);
  std::memcpy(bytes.data(), frames.data(), frames.size());
  if (first_byte_) bytes.front() = *first_byte_;
  if (!stamped_) return;
  const std::int64_t stamp = to_wire(schedule_.due(client, packet));
  std::memcpy(bytes.data(), &stamp, sizeof stamp);
}

bool Content::matches(std::uint32_t client, std::uint64_t first, std::uint64_t begin, Bytes values,
                      Element element) const {
  if (!comparable_) return true;
  const std::size_t frame = frame_bytes_ / size_of(element_) * size_of(element);
  while (!values.empty()) {
    const std::uint64_t packet = begin / packet_frames_;
    const std::size_t offset = begin % packet_frames_;
    const std::size_t frames = std::min(packet_frames_ - offset, values.size() / frame);
    if (!matches_packet(client, first + packet, offset, values.first(frames * frame), element))
      return false;
    values = values.subspan(frames * frame);
    begin += frames;
  }
  return true;
}

bool Content::matches_packet(std::uint32_t client, std::uint64_t packet, std::size_t offset,
                             Bytes values, Element element) const {
  Bytes expected = frames_of(client, packet).subspan(offset * frame_bytes_);
  const std::size_t count = values.size() / size_of(element);
  // Skips the stamp, which is only the due time.
  const std::size_t stamped = stamped_ && offset * frame_bytes_ < stamp_bytes
                                  ? (stamp_bytes - offset * frame_bytes_) / size_of(element_)
                                  : 0;
  const std::size_t skipped = std::min(stamped, count);
  expected = expected.subspan(skipped * size_of(element_));
  values = values.subspan(skipped * size_of(element));
  if (element == element_) return std::memcmp(values.data(), expected.data(), values.size()) == 0;
  if (element_ != Element::s16 || element != Element::f32) return true;
  for (std::size_t i = 0; i < count - skipped; ++i) {
    std::int16_t sent;
    float seen;
    std::memcpy(&sent, expected.data() + i * sizeof sent, sizeof sent);
    std::memcpy(&seen, values.data() + i * sizeof seen, sizeof seen);
    if (seen != static_cast<float>(sent) / 32768) return false;
  }
  return true;
}

}  // namespace millrace::load
