// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "recording/reader/recordings.h"
#include "recording/reader/stream_frames.h"
#include "recording/reader/stream_parts.h"
#include "training/catalogs/index/index.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// A recorded stream with all that an index has of it. Its texts refer to the StreamParts.
struct ReadStream {
  explicit ReadStream(const recording::RecordedStream& first);

  IndexedStream facts;
  std::vector<InnerEvent> events{};
  std::vector<IndexedPart> parts{};  // empty: one
};

// Reads the stream to its end. Throws std::runtime_error if the disk fails.
ReadStream read_stream(recording::Recordings& recordings, const recording::StreamParts& parts);

// The recordings of a stream of an index: one or several.
std::vector<IndexedPart> parts_of(const Index& index, std::uint64_t stream);

}  // namespace millrace::training
