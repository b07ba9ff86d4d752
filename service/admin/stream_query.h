// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "transport/websocket/request_error.h"

namespace millrace {

enum class StreamOrder : std::uint8_t {
  age,   // oldest first
  held,  // most bytes held first
  name,
};

inline constexpr std::uint32_t max_listed = 10'000;  // an answer of about 2.5 MB

// The selection and the order of a list of live streams.
struct StreamQuery {
  StreamOrder order = StreamOrder::age;
  std::uint32_t limit = 1000;
  std::string pipeline{};  // empty: all pipelines
  std::string tenant{};    // empty: all tenants

  bool operator==(const StreamQuery&) const = default;
};

// Parses the parameters of a target like "/streams?limit=10&order=held&pipeline=asr". An error
// names the parameter.
[[nodiscard]] Result<StreamQuery, RequestError> parse_stream_query(std::string_view target);

}  // namespace millrace
