// SPDX-License-Identifier: Apache-2.0
#include "input/resamplers/speexdsp.h"

#include <speex/speex_resampler.h>

#include <algorithm>
#include <array>
#include <new>
#include <numeric>

namespace millrace {
namespace {

// Tones up to 0.8 of the lower Nyquist frequency keep a signal-to-noise ratio of 100 dB; tones from
// 1.2 of that frequency on are attenuated by 90 dB.
constexpr int quality = 5;
constexpr std::size_t least_filter = 80;  // frames of the lower rate that the filter covers
constexpr std::size_t oversampling = 16;  // phases in the filter's table; more are interpolated
constexpr std::size_t piece = 160;        // frames that it copies at once
constexpr std::size_t state_bytes = 512;  // its state, and what the allocator adds
constexpr std::size_t channel_bytes = 12;

struct Destroy {
  void operator()(SpeexResamplerState* state) const { speex_resampler_destroy(state); }
};

class Speexdsp final : public Resampler {
 public:
  Speexdsp(const Rates& rates, std::uint32_t channels) : channels_(channels) {
    state_.reset(speex_resampler_init(channels, rates.from, rates.to, quality, nullptr));
    if (!state_) throw std::bad_alloc();
    speex_resampler_skip_zeros(state_.get());
  }

  Step convert(const float* from, std::size_t frames, float* to, std::size_t room) override {
    auto taken = static_cast<spx_uint32_t>(frames);
    auto given = static_cast<spx_uint32_t>(room);
    speex_resampler_process_interleaved_float(state_.get(), from, &taken, to, &given);
    return {taken, given};
  }

  // speex_resampler_reset_mem() leaves values in the memory of all channels but the first. So with
  // several channels the memory is filled with zeros first.
  void begin_anew() override {
    if (channels_ > 1) fill_with_zeros();
    speex_resampler_reset_mem(state_.get());
    speex_resampler_skip_zeros(state_.get());
  }

 private:
  void fill_with_zeros() {
    static constexpr std::array<float, 1024> zeros{};
    std::array<float, 1024> dropped;
    const std::size_t block = zeros.size() / channels_;
    // The memory is the filter's length, which is twice the latency.
    std::size_t missing =
        2 * static_cast<std::size_t>(speex_resampler_get_input_latency(state_.get())) + 2;
    while (missing > 0)
      missing -= convert(zeros.data(), std::min(missing, block), dropped.data(), block).taken;
  }

  const std::uint32_t channels_;
  std::unique_ptr<SpeexResamplerState, Destroy> state_;
};

}  // namespace

std::unique_ptr<Resampler> open_speexdsp(const Rates& rates, std::uint32_t channels) {
  return std::make_unique<Speexdsp>(rates, channels);
}

// For each channel, libspeexdsp keeps the frames that the filter covers, and a piece. It has one
// table of the filter: with each of its phases, or with oversampled ones if these are fewer.
std::size_t speexdsp_bytes(const Rates& rates, std::uint32_t channels) {
  std::size_t filter = least_filter, phases = oversampling;
  if (rates.from > rates.to) {
    filter = (filter * rates.from / rates.to + 7) / 8 * 8;
    for (std::size_t ratio = 2; ratio <= 16 && ratio * rates.to < rates.from; ratio *= 2)
      phases /= 2;
  }
  phases = std::min<std::size_t>(phases, rates.to / std::gcd(rates.from, rates.to));
  const std::size_t floats = channels * (filter + piece) + filter * phases + 8;
  return floats * sizeof(float) + channels * channel_bytes + state_bytes;
}

}  // namespace millrace
