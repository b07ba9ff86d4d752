// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/event.h"
#include "base/time.h"
#include "chunker/row.h"
#include "chunker/segment_progress.h"
#include "cutting/body_sizes.h"
#include "cutting/segment_endpoints.h"
#include "cutting/stats.h"

namespace millrace {

// The sources of one stream: they create the events that are decisions of the service, between the
// client's events and the chunker. For each event that enters the chunker:
//
//   while rows are cut: sources.cut(row);
//   if (auto event = sources.endpoint()) add it;
//   else if (auto event = sources.size(waited)) add it;
//   else add the client's next event, of at most frames_until_next() frames;
//   sources.added(event, frames);
//
// Rows do not depend on how frames are split into events, except where the load or a worker
// decides. Has no clock. Confined to one thread. Does not allocate after
// construction, except that the voice detector of a pipeline above 16 kHz allocates when a run
// begins.
class EventSources {
 public:
  // The parameters of one stream. The objects outlive the sources.
  struct Settings {
    std::string_view stream;  // the stream's name
    const FrameType& frames;
    const ChunkRule& chunk;
    std::optional<std::uint32_t> requested_size;
    Duration max_wait;  // longest wait of a row for others in its batch
    const std::optional<EndpointRule>& endpoint;
  };

  // `chosen_size` is the size that an adaptive stream of the pipeline and thread chose last; 0:
  // none yet. Both outlive the sources.
  EventSources(const Settings& settings, CutStats& stats, std::uint32_t& chosen_size);

  // The end of the segment that must enter the chunker before any other event; nullopt: none.
  std::optional<Event> endpoint();
  // The size that must enter the chunker before the client's next event; nullopt: none. `waited` is
  // how long the stream's rows wait for a worker.
  std::optional<Event> size(Duration waited);
  // The most frames that the client's next event may have. At least 1 after endpoint() has returned
  // nullopt.
  std::uint64_t frames_until_next() const;

  // True if added() needs the values of frames.
  bool needs_values() const { return endpoints_ && endpoints_->needs_values(); }
  // The event has entered the chunker. `frames` are the values of its frames, if they are needed.
  void added(const Event& event, const std::array<Bytes, 2>& frames = {});
  // The chunker has cut a row. Throws std::bad_alloc; then no endpoint by voice follows.
  void cut(const Row& row);
  // A worker's answer ends the segment of the row with this number.
  void on_worker_endpoint(std::uint64_t seq);

  // The current size of bodies.
  std::uint32_t body_size() const { return sizes_ ? sizes_->size() : chunk_.spec.size; }

  // The source of endpoints; null if the stream has none.
  const SegmentEndpoints* endpoints() const { return endpoints_ ? &*endpoints_ : nullptr; }

 private:
  void begin(SegmentProgress::Began what);

  const ChunkRule& chunk_;
  CutStats& stats_;
  SegmentProgress progress_;
  std::optional<BodySizes> sizes_;
  std::optional<SegmentEndpoints> endpoints_;
};

}  // namespace millrace
