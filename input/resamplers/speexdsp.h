// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "input/resamplers/resampler.h"

namespace millrace {

// The resampler of libspeexdsp. Throws std::bad_alloc.
std::unique_ptr<Resampler> open_speexdsp(const Rates& rates, std::uint32_t channels);

// A bound of the bytes that it allocates.
std::size_t speexdsp_bytes(const Rates& rates, std::uint32_t channels);

}  // namespace millrace
