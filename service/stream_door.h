// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/name_book.h"
#include "service/live_stream.h"
#include "service/log.h"
#include "service/overload.h"
#include "service/pipeline.h"
#include "service/stream_table.h"
#include "transport/door.h"

namespace millrace {

// What the doors of all io threads share. Thread-safe, as its parts are.
struct Admission {
  NameBook names;             // of open connections
  Budget connections;         // clients that have a stream, those that left theirs among them
  Budget sockets;             // clients, those that have none yet among them
  const std::string made_up;  // begin of the names that the service makes up
  std::atomic<Overload> overload = Overload::none;  // relaxed: it guards nothing
  // How many there may be by memory. Relaxed too.
  std::atomic<std::uint64_t> streams = std::numeric_limits<std::uint64_t>::max();
};

// Decides on one io thread which clients get a stream, and makes it. Confined to that thread.
class StreamDoor final : public Door {
 public:
  // All of it outlives the door. Stream ids are `thread` modulo `threads`.
  StreamDoor(std::span<const std::unique_ptr<Pipeline>> pipelines, Admission& admission,
             ReturnBox& returns, Log& log, std::uint32_t thread, std::uint32_t threads);

  [[nodiscard]] Result<std::unique_ptr<StreamSink>, RequestError> open(
      StreamRequest request, ClientOutbox& outbox) override;

  // From now on everybody is refused.
  void shut() { shut_ = true; }

  // Streams may take so many bytes more; beyond that no client is read further than its next row
  // needs.
  void allow(std::uint64_t more);

  StreamTable& table() { return table_; }
  // Of pipeline i.
  const StreamStats& stats(std::size_t i) const { return places_[i]->stats; }

 private:
  // What the streams of one pipeline work with here.
  struct PipelinePlace {
    explicit PipelinePlace(Pipeline& of);
    Pipeline& pipeline;
    HubRows rows;
    StreamStats stats;
    BlockPool blocks;
  };

  PipelinePlace* find(std::string_view pipeline) const;
  // Leaves the request as it is where it is refused.
  Result<std::unique_ptr<StreamSink>, RequestError> decide(StreamRequest& request,
                                                           ClientOutbox& outbox);
  // What fails in it, for want of memory, ends the process: its half would stay for ever.
  std::unique_ptr<StreamSink> admit(PipelinePlace& place, StreamRequest request,
                                    SampleFormat format, Share connection,
                                    ClientOutbox& outbox) noexcept;

  std::vector<std::unique_ptr<PipelinePlace>> places_;
  Admission& admission_;
  ReturnBox& returns_;
  Log& log_;
  StreamTable table_;
  std::uint64_t next_id_;
  const std::uint32_t threads_;
  bool shut_ = false;
};

}  // namespace millrace
