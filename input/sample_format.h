// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/enum_names.h"
#include "base/result.h"

namespace millrace {

// How a client writes one value of a frame.
enum class SampleFormat : std::uint8_t { s16le, f16le, f32le };

constexpr std::size_t size_of(SampleFormat format) { return format == SampleFormat::f32le ? 4 : 2; }

// What a client sends that does not say its format.
constexpr SampleFormat default_format(bool features) {
  return features ? SampleFormat::f32le : SampleFormat::s16le;
}

// A sentence that names what is allowed.
struct FormatError {
  std::string message;
};

// The format of that name. Audio comes as s16le or f32le, features as f32le or f16le.
Result<SampleFormat, FormatError> parse_sample_format(std::string_view name, bool features);

}  // namespace millrace
