// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "input/resamplers/resampler.h"

namespace millrace {

// The resampler of libsoxr. It converts whole blocks, so its frames come in bursts. begin_anew()
// allocates. Throws std::bad_alloc.
std::unique_ptr<Resampler> open_soxr(const Rates& rates, std::uint32_t channels);

}  // namespace millrace
