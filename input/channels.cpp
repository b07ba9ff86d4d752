// SPDX-License-Identifier: Apache-2.0
#include "input/channels.h"

#include <array>
#include <cassert>
#include <cstring>
#include <variant>

#include "input/value_formats.h"

namespace millrace {
namespace {

using values::F32;
using values::S16;

// Values are copied as they are: they are decoded later, and then there are fewer.
template <class Word, std::size_t known_channels = 0>
void select(const std::byte* __restrict from, std::byte* __restrict to, std::size_t frames,
            std::size_t channels) {
  if (known_channels > 0) channels = known_channels;
  Word word;
  for (std::size_t i = 0; i < frames; ++i) {
    std::memcpy(&word, from + i * channels * sizeof word, sizeof word);
    std::memcpy(to + i * sizeof word, &word, sizeof word);
  }
}

using Select = void (*)(const std::byte*, std::byte*, std::size_t, std::size_t);

template <class Word>
Select select_of(std::size_t channels) {
  return channels == 2 ? select<Word, 2> : select<Word>;
}

Select select_of(std::size_t bytes, std::size_t channels) {
  switch (bytes) {
    case 1: return select_of<std::uint8_t>(channels);
    case 2: return select_of<std::uint16_t>(channels);
    case 3: return select_of<std::array<std::byte, 3>>(channels);
    default: return select_of<std::uint32_t>(channels);
  }
}

float float_at(const std::byte* from, std::size_t i) {
  return std::bit_cast<float>(F32::load(from + i * F32::size));
}

// Each half is exact, so the sum is rounded once, and it cannot become infinite.
void average_two(const std::byte* __restrict from, std::byte* __restrict to, std::size_t frames,
                 std::size_t) {
  for (std::size_t i = 0; i < frames; ++i)
    F32::store(to + i * F32::size,
               F32::encode(float_at(from, 2 * i) * 0.5f + float_at(from, 2 * i + 1) * 0.5f));
}

void average_two_s16(const std::byte* __restrict from, std::byte* __restrict to, std::size_t frames,
                     std::size_t) {
  for (std::size_t i = 0; i < frames; ++i) {
    const std::uint32_t both = F32::load(from + i * F32::size);
    const std::int32_t sum =
        static_cast<std::int16_t>(both) + (static_cast<std::int32_t>(both) >> 16);
    const std::int32_t down = sum >> 1;
    S16::store(to + i * S16::size, static_cast<S16::Bits>(down + (sum & down & 1)));
  }
}

void average_all(const std::byte* __restrict from, std::byte* __restrict to, std::size_t frames,
                 std::size_t channels) {
  for (std::size_t i = 0; i < frames; ++i) {
    double sum = 0;
    for (std::size_t c = 0; c < channels; ++c) sum += float_at(from, i * channels + c);
    F32::store(to + i * F32::size,
               F32::encode(static_cast<float>(sum / static_cast<double>(channels))));
  }
}

}  // namespace

OneOfChannels::OneOfChannels(const ClientFormat& from, bool to_s16)
    : channels_(from.values), format_(from.format) {
  assert(!std::holds_alternative<AllChannels>(from.channel));
  if (const auto* one = std::get_if<OneChannel>(&from.channel)) {
    assert(one->index < channels_);
    offset_ = one->index * size_of(format_);
    kernel_ = select_of(size_of(format_), channels_);
  } else {
    choose_mean(from, to_s16);
  }
}

void OneOfChannels::choose_mean(const ClientFormat& from, bool to_s16) {
  if (channels_ == 2 && from.format == SampleFormat::s16le && to_s16) {
    kernel_ = average_two_s16;
    return;
  }
  format_ = SampleFormat::f32le;
  decode_ = value_kernel(from.format, Element::f32);
  kernel_ = channels_ == 2 ? average_two : average_all;
}

void OneOfChannels::apply(const std::byte* from, std::byte* to, std::size_t frames) const {
  assert(frames * channels_ <= most_values);
  if (!decode_) return kernel_(from + offset_, to, frames, channels_);
  std::array<std::byte, most_values * F32::size> floats;
  decode_(from, floats.data(), frames * channels_);
  kernel_(floats.data(), to, frames, channels_);
}

}  // namespace millrace
