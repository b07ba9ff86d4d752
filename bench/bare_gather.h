// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "bench/recorded_streams.h"

namespace millrace::bench {

// The control of a replay: a loop that gathers the chunks of all streams, in turns, from the mapped
// files of a recording into one buffer [streams, chunk_frames]. It reads nothing else of the files,
// and verifies no checksum.
class BareGather {
 public:
  // Finds the chunks. Throws std::runtime_error.
  BareGather(const std::string& directory, const RecordedAudio& audio);

  // Maps the files anew, as a process does that has just started. Returns rows per second.
  double run(Element dtype) const;

 private:
  struct Place {
    std::size_t file = 0;
    std::size_t offset = 0;
  };
  using Chunks = std::vector<std::vector<Bytes>>;

  std::size_t chunk_bytes() const { return std::size_t{2} * audio_.chunk_frames; }
  void locate(const Chunks& chunks);

  const RecordedAudio audio_;
  std::vector<std::string> paths_;
  std::vector<Place> places_;
};

}  // namespace millrace::bench
