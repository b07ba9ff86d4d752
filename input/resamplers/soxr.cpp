// SPDX-License-Identifier: Apache-2.0
#include "input/resamplers/soxr.h"

#include <soxr.h>

#include <new>

namespace millrace {
namespace {

// The filter is as wide as that of libspeexdsp: between 0.85 and 1.1 of the lower Nyquist
// frequency. With soxr_quality_spec()'s own limits and blocks, 44.1 to 16 kHz is 40 ms late; with
// these, 21 ms.
soxr_quality_spec_t short_filter() {
  soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  quality.passband_end = 0.85;
  quality.stopband_begin = 1.1;
  return quality;
}

soxr_runtime_spec_t small_blocks() {
  soxr_runtime_spec_t run_time = soxr_runtime_spec(1);
  run_time.log2_min_dft_size = 8;
  return run_time;
}

struct Delete {
  void operator()(soxr* state) const { soxr_delete(state); }
};

class Soxr final : public Resampler {
 public:
  Soxr(const Rates& rates, std::uint32_t channels) {
    const soxr_io_spec_t floats = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    const soxr_quality_spec_t quality = short_filter();
    const soxr_runtime_spec_t run_time = small_blocks();
    state_.reset(
        soxr_create(rates.from, rates.to, channels, nullptr, &floats, &quality, &run_time));
    if (!state_) throw std::bad_alloc();
  }

  Step convert(const float* from, std::size_t frames, float* to, std::size_t room) override {
    Step step;
    if (soxr_process(state_.get(), from, frames, &step.taken, to, room, &step.given))
      throw std::bad_alloc();
    return step;
  }

  void begin_anew() override {
    if (soxr_clear(state_.get())) throw std::bad_alloc();
  }

 private:
  std::unique_ptr<soxr, Delete> state_;
};

}  // namespace

std::unique_ptr<Resampler> open_soxr(const Rates& rates, std::uint32_t channels) {
  return std::make_unique<Soxr>(rates, channels);
}

}  // namespace millrace
