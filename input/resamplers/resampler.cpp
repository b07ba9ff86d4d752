// SPDX-License-Identifier: Apache-2.0
#include "input/resamplers/resampler.h"

#include <algorithm>

#include "input/resamplers/soxr.h"
#include "input/resamplers/speexdsp.h"

namespace millrace {
namespace {

// The rates that are assigned to libsoxr. All others are assigned to libspeexdsp. docs/sizing.md
// lists what each costs.
struct Assigned {
  Rates rates;
  std::size_t bytes;  // per channel
};
constexpr Assigned to_soxr[] = {
    {{44'100, 16'000}, 104 * 1024},
    {{16'000, 44'100}, 136 * 1024},
    {{44'100, 48'000}, 96 * 1024},
    {{48'000, 44'100}, 112 * 1024},
};

const Assigned* assigned_to_soxr(const Rates& rates) {
  const auto* found = std::ranges::find(to_soxr, rates, &Assigned::rates);
  return found == std::end(to_soxr) ? nullptr : found;
}

}  // namespace

std::unique_ptr<Resampler> open_resampler(const Rates& rates, std::uint32_t channels) {
  if (assigned_to_soxr(rates)) return open_soxr(rates, channels);
  return open_speexdsp(rates, channels);
}

std::size_t resampler_bytes(const Rates& rates, std::uint32_t channels) {
  if (const Assigned* soxr = assigned_to_soxr(rates)) return soxr->bytes * channels;
  return speexdsp_bytes(rates, channels);
}

}  // namespace millrace
