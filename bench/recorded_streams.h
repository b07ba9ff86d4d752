// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace millrace::bench {

// The streams of a recording for benchmarks: 16 kHz s16 mono, named and numbered from 1.
struct RecordedAudio {
  std::uint64_t streams = 64;
  std::uint64_t chunks = 3000;             // chunks of each stream
  std::uint32_t chunk_frames = 1600;       // frames of an event, and of a body
  std::uint64_t events_per_slice = 2;      // a commit every 200 ms
  std::uint64_t file_size = 256ull << 20;  // bytes of a recording file
  std::string pipeline = "bench";
};

// Writes a directory of sealed recording files, with the slices of the streams in turns, as a
// service does. The frames are pseudo-random. Throws std::runtime_error.
void write_recording(const std::string& directory, const RecordedAudio& audio);

}  // namespace millrace::bench
