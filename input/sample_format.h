// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/enum_names.h"
#include "base/result.h"

namespace millrace {

// The client's representation of one value of a frame.
enum class SampleFormat : std::uint8_t { s16le, f16le, f32le };

constexpr std::size_t size_of(SampleFormat format) { return format == SampleFormat::f32le ? 4 : 2; }

// The format of a client that does not name one.
constexpr SampleFormat default_format(bool features) {
  return features ? SampleFormat::f32le : SampleFormat::s16le;
}

// An error message that lists the allowed formats.
struct FormatError {
  std::string message;
};

// The format with this name: s16le or f32le for audio, f32le or f16le for features.
Result<SampleFormat, FormatError> parse_sample_format(std::string_view name, bool features);

}  // namespace millrace
