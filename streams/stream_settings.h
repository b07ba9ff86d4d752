// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/frame_type.h"
#include "base/ids.h"
#include "base/time.h"
#include "chunker/spec.h"
#include "input/sample_format.h"
#include "streams/block_pool.h"
#include "streams/stats.h"
#include "streams/stream_host.h"

namespace millrace {

struct StreamSettings {
  StreamId id{};
  std::string name{};
  std::string_view pipeline{};  // its name; outlives the stream
  FrameType type{};             // of the pipeline
  SampleFormat format{};        // of the client
  Spec spec{};
  // The stream pauses when it holds this many frames; at least the spec's width. While blocks are
  // scarce, it pauses when it holds a width of frames that are in no batch.
  std::uint64_t frames_limit = 0;
  // Frames above that after long pauses: what may be held grows at twice real time while the stream
  // is paused, by this at most, until no more than half of frames_limit is held.
  std::uint64_t pause_frames = 0;
  std::optional<Duration> shed_after = {};  // the longest wait of frames in front of the chunker
  bool explain = false;                     // results come with their Explanation
  Time opened{};
};

// The surroundings of a stream on its thread. All of it outlives the stream.
struct StreamLinks {
  StreamHost& host;
  BlockPool& blocks;  // of FrameBuffer::block_bytes() for the pipeline's frames and width
  StreamStats& stats;
};

}  // namespace millrace
