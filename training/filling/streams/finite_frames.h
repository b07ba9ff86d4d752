// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// The first of these frames with a value that is infinite or NaN. Nullopt: all are finite.
std::optional<std::uint64_t> first_not_finite(const FrameType& type, Bytes frames);

// The error of such a frame of a stream. It names the file.
ReadError not_finite(const FrameReader& stream, std::uint64_t frame);

}  // namespace millrace::training
