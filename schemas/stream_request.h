// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

// What a client asks for when it opens a stream. Members that it leaves out are absent or empty;
// the pipeline decides whether it takes the others.
struct StreamRequest {
  std::string pipeline = "default";
  std::string id{};       // a valid name, or empty
  std::string options{};  // a JSON object as it was sent, or empty
  std::optional<std::string> format{};
  std::optional<std::string> channel{};
  std::optional<std::string> chunk{};
  std::optional<double> rate{};  // finite
  std::optional<std::uint32_t> channels{};
  std::optional<std::uint32_t> dim{};
  bool explain = false;  // over WebSocket: results say where their time went
};

}  // namespace millrace
