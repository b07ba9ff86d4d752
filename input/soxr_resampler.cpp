// SPDX-License-Identifier: Apache-2.0
#include "input/soxr_resampler.h"

#include <soxr.h>

#include <new>

namespace millrace {
namespace {

struct Delete {
  void operator()(soxr* state) const { soxr_delete(state); }
};

class Soxr final : public Resampler {
 public:
  Soxr(const Rates& rates, std::uint32_t channels) {
    const soxr_io_spec_t floats = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    const soxr_runtime_spec_t one_thread = soxr_runtime_spec(1);
    state_.reset(
        soxr_create(rates.from, rates.to, channels, nullptr, &floats, &quality, &one_thread));
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
