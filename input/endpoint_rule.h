// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/enum_names.h"

namespace millrace {

// Why a segment ended by itself.
enum class EndpointReason : std::uint8_t {
  silence,    // after speech
  no_speech,  // silence in a segment without speech
  length,     // the segment reached its greatest length
  worker,     // a worker's answer
};

// The defaults of a configuration, as lengths for parse_length().
inline constexpr std::string_view default_silence = "800ms", default_longest_segment = "20s";

// How the segments of a pipeline's streams end without the client. All lengths are in frames of the
// pipeline, counted from the start of the segment, whatever started it.
struct EndpointRule {
  enum class By : std::uint8_t {
    vad,     // silence, found by the voice detector
    worker,  // the worker's answer to a row
    length,  // only `max`
  };
  // The event that an endpoint creates.
  enum class On : std::uint8_t { segment, reset };

  By by = By::vad;
  std::uint64_t silence = 0;                        // after speech
  std::optional<std::uint64_t> before_speech = {};  // in a segment without speech; nullopt: off
  std::uint64_t max = 0;                            // longest segment
  std::uint32_t sensitivity = 2;                    // sensitivity of the voice detector, 0 to 3
  On on_endpoint = On::segment;

  bool operator==(const EndpointRule&) const = default;
};

}  // namespace millrace
