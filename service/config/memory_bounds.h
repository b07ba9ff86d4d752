// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "service/config/options.h"

namespace millrace {

// The most memory that a set of streams and lanes can hold, in bytes.
struct MemoryBounds {
  std::size_t frames = 0;  // in the buffers of streams, and in messages that are being received
  std::size_t rows = 0;    // ready rows in no batch, and events that wait to become rows
  std::size_t slabs = 0;   // slabs of one lane with default_credits
  // Not sent or not acknowledged yet, and incomplete messages of workers on other machines.
  std::size_t results = 0;
  // The rest of each stream, with conversion and voice detector, and connections without a stream.
  std::size_t streams = 0;
  // The queue to the recorder, and the recorder's part of each stream; 0 without `record`.
  std::size_t recording = 0;
  std::size_t sockets = 0;  // kernel memory of the clients' connections

  std::size_t all() const;
};

// The credits of a worker that does not choose a number.
inline constexpr std::uint32_t default_credits = 2;

// The time of frames that the client of a stream with `resume` keeps, and that its stream may hold
// while the client must acknowledge messages: the acknowledgement comes after these frames.
double kept_seconds(const PipelineOptions& pipeline);

// The most memory of a stream besides its frames, its results, and the conversion and detector that
// it has from the start. docs/sizing.md has the figure.
std::size_t bare_stream_bytes();

// The limit on bytes of incomplete messages from all workers on other machines, beyond
// reserved_unread_bytes of each (workers/hub/server.h). It is the limit on slabs, but at least one
// message.
std::size_t unread_bytes(const LimitOptions& limits);

// For one lane of the pipeline: one worker with a stream in every slot.
MemoryBounds memory_bounds(const PipelineOptions& pipeline, const LimitOptions& limits);
// For the process, whatever clients and workers do.
MemoryBounds memory_bounds(const Options& options);

}  // namespace millrace
