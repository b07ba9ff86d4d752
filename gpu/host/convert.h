// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "base/frame_type.h"

namespace millrace {

// Converts `count` values. Neither address needs to be aligned. `from` and `to` must not overlap.
using Convert = void (*)(const std::byte* from, std::byte* to, std::size_t count);

// Returns the conversion between two element types, or null if they have no conversion.
// Thread-safe.
// - The same type: the values are copied.
// - s16 to f32 or f16: x / 32768.
// - f32 to f16: rounded to the nearest value, ties to even. Values beyond the largest finite f16,
//   infinities and NaN included, become that value with their sign: infinity must not reach a
//   model.
// - f16 to f32: exact.
// - Another type to s16: none.
Convert conversion(Element from, Element to);

// True if no value of these is infinite or NaN; always for s16. Requires: whole values.
bool all_finite(Element element, Bytes values);

}  // namespace millrace
