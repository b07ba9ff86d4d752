// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "service/config/options.h"

namespace millrace {

// The most that some streams and lanes can hold, in bytes.
struct MemoryBounds {
  std::size_t frames = 0;   // in the buffers of its streams, and the messages on their way there
  std::size_t rows = 0;     // cut, in no batch, and the events that wait to become some
  std::size_t slabs = 0;    // with the credits that a worker has unless it says otherwise
  std::size_t results = 0;  // not yet sent; of workers on other machines, not complete
  std::size_t streams = 0;  // what each is besides; connections that have none yet
  std::size_t sockets = 0;  // in the kernel, of the clients' connections

  std::size_t all() const;
};

inline constexpr std::uint32_t default_credits = 2;

// The most that a stream takes besides its frames and results. docs/sizing.md has the figure.
std::size_t bare_stream_bytes();

// The most bytes of incomplete messages from workers on other machines, of all of them together
// and beyond own_unread of each (workers/hub/server.h): as much as slabs, at least a message.
std::size_t unread_bytes(const LimitOptions& limits);

// One lane of the pipeline: one worker, all its slots taken.
MemoryBounds memory_bounds(const PipelineOptions& pipeline, const LimitOptions& limits);
// The process, whoever connects and attaches.
MemoryBounds memory_bounds(const Options& options);

}  // namespace millrace
