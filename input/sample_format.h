// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/enum_names.h"
#include "base/result.h"

namespace millrace {

// The client's representation of one value of a frame; for `opus` that of the audio.
enum class SampleFormat : std::uint8_t { s16le, s24le, f16le, f32le, mulaw, alaw, opus };

// The bytes of one value. 0 for Opus: the size of a packet is not that of its frames.
constexpr std::size_t size_of(SampleFormat format) {
  constexpr std::size_t sizes[] = {2, 3, 2, 4, 1, 1, 0};
  return sizes[static_cast<std::size_t>(format)];
}

// The format of a client that does not name one.
constexpr SampleFormat default_format(bool features) {
  return features ? SampleFormat::f32le : SampleFormat::s16le;
}

// An error message that lists the allowed formats.
struct FormatError {
  std::string message;
};

// The format with this name: every format but f16le for audio, f32le or f16le for features.
Result<SampleFormat, FormatError> parse_sample_format(std::string_view name, bool features);

}  // namespace millrace
