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
#include "service/log/log.h"
#include "service/pipelines/pipeline.h"
#include "service/pipelines/pipeline_streams.h"
#include "streams/stream_table.h"
#include "transport/net/retry_times.h"
#include "transport/sessions/client_gate.h"
#include "transport/sessions/stream_admission.h"

namespace millrace {

// What the admissions of all io threads share. Thread-safe, as its parts are.
struct SharedAdmission {
  NameBook names;             // of open connections
  Budget connections;         // one for each stream, until its last row is done
  ClientGate gate;            // of all listeners for clients
  const std::string made_up;  // the begin of names that the service makes up
  // The most streams that memory allows. Relaxed: it guards nothing.
  std::atomic<std::uint64_t> streams = std::numeric_limits<std::uint64_t>::max();
  const bool explain = false;  // streams may ask for explanations
};

// Decides on one io thread which clients get a stream, and makes it. Confined to that thread.
class ThreadAdmission final : public StreamAdmission {
 public:
  struct Thread {
    SharedAdmission& shared;
    ReturnBox& returns;
    Log& log;
    std::uint32_t index;  // of the thread: stream ids are `index` modulo `threads`
    std::uint32_t threads;
  };

  // All of it outlives the admission.
  ThreadAdmission(std::span<const std::unique_ptr<Pipeline>> pipelines, const Thread& thread);

  [[nodiscard]] Result<StreamHandle, RequestError> open(StreamRequest request,
                                                        ClientOutput& output) override;

  // Refuses all streams from now on.
  void refuse_all() { refuses_all_ = true; }

  // Streams may take this many bytes more. Beyond that, no client is read further than its next row
  // needs.
  void allow(std::uint64_t more);

  StreamTable& table() { return table_; }
  // Of pipeline i.
  const StreamStats& stats(std::size_t i) const { return pipelines_[i]->stats(); }

 private:
  PipelineStreams* find(std::string_view pipeline) const;
  // Leaves the request as it is if it is refused.
  Result<StreamHandle, RequestError> decide(StreamRequest& request, ClientOutput& output);
  RequestError no_pipeline(std::string_view asked) const;
  bool memory_short() const;
  // A refusal with a time to retry.
  RequestError busy(unsigned status, std::string parameter, std::string message, Refusal reason);
  // A failed allocation in it ends the process: half a stream would stay for ever.
  StreamHandle admit(PipelineStreams& streams, StreamRequest request, SampleFormat format,
                     Share connection, ClientOutput& output) noexcept;

  std::vector<std::unique_ptr<PipelineStreams>> pipelines_;  // outlive the streams in table_
  StreamTable table_;
  const Thread thread_;
  RetryTimes retry_times_;
  std::uint64_t next_id_;
  bool refuses_all_ = false;
};

}  // namespace millrace
