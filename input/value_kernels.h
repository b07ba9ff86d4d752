// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "input/sample_format.h"

namespace millrace {

// The loops over the values of a message. Addresses may be odd. Immutable.
//
// An s16 value v is v / 32768 as a float, an s24 value v / 8388608; G.711 has the values of s16. A
// denormal becomes zero. A value beyond the range of the pipeline becomes the nearest value in it.

// Converts `values` values. Returns how many of them were beyond the range of `to`.
using ValueKernel = std::uint64_t (*)(const std::byte* from, std::byte* to, std::size_t values);

// Requires: `from` is not Opus.
ValueKernel value_kernel(SampleFormat from, Element to);

// The conversion to floats for a resampler. Floats beyond ±2^96 become ±2^96, and count as beyond
// the range: no sum of a resampler can then become infinite.
ValueKernel value_kernel_for_resampling(SampleFormat from);

// True if no value of these is NaN or infinite. Requires: whole values; `format` is not Opus.
bool all_finite(SampleFormat format, Bytes values);

}  // namespace millrace
