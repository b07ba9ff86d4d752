// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/frame_type.h"

namespace millrace {

// Converts each frame to one s16 sample: the mean of its channels, rounded to the nearest value,
// ties to even. Values outside the range of s16 become the nearest value in it.
// Requires: `frames` contains exactly `to.size()` frames. All values are finite.
void to_mono_samples(Bytes frames, const FrameType& type, std::span<std::int16_t> to);

}  // namespace millrace
