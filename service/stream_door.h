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
#include "service/pipeline.h"
#include "service/stream_table.h"
#include "transport/client_gate.h"
#include "transport/door.h"
#include "transport/retry_times.h"

namespace millrace {

// What the doors of all io threads share. Thread-safe, as its parts are.
struct Admission {
  NameBook names;             // of open connections
  Budget connections;         // clients that have a stream, those that left theirs among them
  ClientGate gate;            // of all listeners for clients
  const std::string made_up;  // begin of the names that the service makes up
  // How many streams there may be by memory. Relaxed: it guards nothing.
  std::atomic<std::uint64_t> streams = std::numeric_limits<std::uint64_t>::max();
  const bool explain = false;  // streams may ask for explanations
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
  RequestError no_pipeline(std::string_view asked) const;
  bool memory_short() const;
  // A refusal with the time when to come again.
  RequestError busy(unsigned status, std::string parameter, std::string message, Refusal reason);
  // What fails in it, for want of memory, ends the process: its half would stay for ever.
  std::unique_ptr<StreamSink> admit(PipelinePlace& place, StreamRequest request,
                                    SampleFormat format, Share connection,
                                    ClientOutbox& outbox) noexcept;

  std::vector<std::unique_ptr<PipelinePlace>> places_;
  Admission& admission_;
  ReturnBox& returns_;
  Log& log_;
  StreamTable table_;
  RetryTimes retry_times_;
  std::uint64_t next_id_;
  const std::uint32_t threads_;
  bool shut_ = false;
};

}  // namespace millrace
