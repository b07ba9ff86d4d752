// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

// The MPEG audio frames of a file, such as MP3, counted from their headers.
struct MpegFrames {
  std::uint64_t frames = 0;              // without that of a Xing header
  std::uint32_t samples = 0;             // per frame and channel
  bool has_xing = false;                 // the first frame is a Xing (or Info) header
  std::optional<std::uint32_t> counted;  // the number of frames in it
  std::uint64_t counted_at = 0;          // the offset of this number in the file
  std::uint64_t end = 0;                 // the offset behind the last whole frame
};

// Reads the whole file. Skips tags, and bytes that are no frame. nullopt: it cannot be read, or has
// no frame.
std::optional<MpegFrames> count_mpeg_frames(const std::string& path);

}  // namespace millrace
