// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/event.h"
#include "base/frame_type.h"
#include "base/ids.h"
#include "base/rates/rate.h"
#include "base/rates/shared_rate.h"
#include "base/result_head.h"
#include "base/time.h"
#include "chunker/spec.h"
#include "input/client_format.h"
#include "input/endpoint_rule.h"
#include "streams/frames/block_pool.h"
#include "streams/stats/stats.h"
#include "streams/stream_host.h"

namespace millrace {

// The most messages of the longest kind from a client to its worker: those that wait for the next
// row of their stream, and all that the stream keeps.
inline constexpr std::size_t waiting_posts = 4, kept_posts = 8;

// The parameters of one stream.
struct StreamSettings {
  StreamId id{};
  std::string name{};
  std::string_view pipeline{};  // the pipeline's name; outlives the stream
  FrameType type{};             // the pipeline's
  ClientFormat format{};        // the client's
  ChunkRule chunk{};
  // The size that the client requested: one of chunk.sizes, which the stream keeps.
  std::optional<std::uint32_t> requested_size = {};
  std::optional<EndpointRule> endpoint = {};
  Duration max_wait{};  // BatchRule::max_wait of the pipeline: adaptive sizes depend on it
  // The stream pauses when it holds this many frames; at least the rule's width. While blocks are
  // scarce, it pauses when it holds the rule's width of frames that are in no batch.
  std::uint64_t frames_limit = 0;
  // Additional frames after long pauses: while the stream is paused, the limit grows at twice real
  // time, by at most this number. It returns to frames_limit when at most half of that is held.
  std::uint64_t pause_frames = 0;
  std::size_t longest_post = 0;             // bytes of a message of the client to the worker
  std::optional<Duration> shed_after = {};  // longest wait of frames before the chunker
  bool explain = false;                     // results have an Explanation
  // Seconds of audio of all streams of its tenant. Outlives the stream; null: not limited.
  SharedRate* signal = nullptr;
  std::string options{};  // the client's, a JSON object; or empty
  Time opened{};
};

// True if the bodies of a segment are the same when it is cut again as the first of its run.
inline bool repeats_bodies(const StreamSettings& settings) {
  const ChunkRule& rule = settings.chunk;
  const bool one_size = rule.sizes.sizes.empty() || settings.requested_size;
  return one_size && rule.first_longer() == 0;
}

// A stream that may be resumed.
struct ResumeSettings {
  // If the state of a segment is lost, it is computed again if it has up to this many frames. If
  // not repeats_bodies(), no row whose result the client has is computed again.
  std::uint64_t longest_segment = 0;
  ResumePoint start = {};  // where a stream continues that is opened anew; all 0 for another one

  Event open_event() const {
    return {.kind = Event::Kind::open, .count = start.begin, .rows = start.seq};
  }
};

inline constexpr RateRule no_pace;  // a stream is read at any pace

// The objects that a stream uses on its thread. All of them outlive the stream.
struct StreamLinks {
  StreamHost& host;
  BlockPool& blocks;  // block size: FrameBuffer::block_bytes() for the pipeline's frames and width
  StreamStats& stats;
  // The size that an adaptive stream of this pipeline and thread chose last; 0: none yet.
  std::uint32_t& chosen_size;
  // Seconds of audio that a stream receives per second. Opus without a limit has opus_pace.
  const RateRule& pace = no_pace;
};

}  // namespace millrace
