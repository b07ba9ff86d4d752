// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checking/plan/checked_stream.h"

namespace millrace::checking {

// Frames of s16 whose values are 1, 2, 3 …
inline StreamFrames counted_frames(std::uint64_t count, const std::string& name = "a") {
  StreamFrames frames{.name = name, .options = {}, .bytes = {}};
  for (std::uint64_t i = 1; i <= count; ++i) {
    frames.bytes.push_back(static_cast<std::byte>(i & 0xffu));
    frames.bytes.push_back(static_cast<std::byte>(i >> 8));
  }
  return frames;
}

// Streams with drawn events. Bodies have 10 frames, and 2 before them.
inline std::vector<CheckedStream> drawn_streams(std::uint32_t count) {
  Draws draws;
  std::vector<StreamFrames> frames;
  for (std::uint32_t i = 0; i < count; ++i)
    frames.push_back(counted_frames(80 + draws.number(80), std::to_string(i)));
  return cut_streams(std::move(frames), {}, {.spec = {.size = 10, .left = 2}}, draws);
}

}  // namespace millrace::checking
