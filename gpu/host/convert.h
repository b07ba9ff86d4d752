// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/frame_type.h"

namespace millrace {

// Converts `count` values, which lie at any address and do not overlap with what is written.
using Convert = void (*)(const std::byte* from, std::byte* to, std::size_t count);

// How values of one element become another: the same copies; s16 becomes x / 32768; f32 becomes
// f16 rounded to nearest even, and where it is too large for f16 the largest finite value of its
// sign, because infinity must not reach a model. Nothing becomes s16: null.
Convert conversion(Element from, Element to);

}  // namespace millrace
