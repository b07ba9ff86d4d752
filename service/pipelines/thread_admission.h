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
#include "service/log/log.h"
#include "service/pipelines/name_book.h"
#include "service/pipelines/pipeline.h"
#include "service/pipelines/pipeline_streams.h"
#include "service/pipelines/request_check.h"
#include "service/recorder/thread_recording.h"
#include "streams/stream_table.h"
#include "transport/access/resume_keys.h"
#include "transport/net/retry_times.h"
#include "transport/sessions/client_gate.h"
#include "transport/sessions/stream_admission.h"

namespace millrace {

// The objects that the admissions of all io threads share. Thread-safe.
struct SharedAdmission {
  NameBook names;                 // names of streams, until their connection ends
  Budget connections;             // 1 for each stream, until its last row is done
  ClientGate gate;                // the gate of all listeners for clients
  const std::string name_prefix;  // prefix of names that the service chooses
  // The number of the first stream: different for each process, so that a worker that attaches to
  // the next one cannot mean a stream of the one before.
  const std::uint64_t first_stream = 0;
  // The number of streams that memory allows. Relaxed: guards no other data.
  std::atomic<std::uint64_t> streams = std::numeric_limits<std::uint64_t>::max();
  const bool explain = false;       // streams may ask for explanations
  CurrentResumeKeys resume_keys{};  // sign and verify the tokens of streams
};

// Accepts or refuses the requests for streams on one io thread, and creates the streams. Confined
// to that thread.
class ThreadAdmission final : public StreamAdmission {
 public:
  struct Thread {
    SharedAdmission& shared;
    ReturnBox& returns;
    Log& log;
    std::uint32_t index;    // index of the thread; stream ids are `index` modulo `threads`
    std::uint32_t threads;  // number of io threads
    ThreadRecording* recording = nullptr;  // null: nothing is recorded
  };

  // The pipelines and the objects of `thread` must outlive the admission.
  ThreadAdmission(std::span<const std::unique_ptr<Pipeline>> pipelines, const Thread& thread);

  [[nodiscard]] Result<StreamHandle, RequestError> open(StreamRequest request,
                                                        ClientOutput& output) override;
  [[nodiscard]] std::optional<RequestError> refusal(const StreamRequest& request) override;

  // Refuses all streams from now on.
  void refuse_all() { refuses_all_ = true; }

  // Allows all streams together `more` further bytes of frames. Above that, a client is read only
  // as far as its next row needs.
  void allow(std::uint64_t more);

  StreamTable& table() { return table_; }
  // The counters of pipeline i.
  const StreamStats& stats(std::size_t i) const { return pipelines_[i]->stats(); }

 private:
  // A request without an error, and the streams of its pipeline.
  struct Checked {
    PipelineStreams& streams;
    CheckedRequest request;
  };

  PipelineStreams* find(std::string_view pipeline) const;
  // Everything but the limits that a stream takes a part of.
  Result<Checked, RequestError> check(const StreamRequest& request);
  // Does not change the request if it refuses it.
  Result<StreamHandle, RequestError> decide(StreamRequest& request, ClientOutput& output);
  RequestError no_pipeline(std::string_view asked) const;
  bool memory_short() const;
  // Build refusals with a retry time.
  RequestError busy(unsigned status, std::string parameter, std::string message, Refusal reason);
  RequestError too_many_connections();
  RequestError name_in_use();
  RequestError no_slot();
  // noexcept: if an allocation fails, the process ends, as a half-made stream could not be removed.
  StreamHandle admit(PipelineStreams& streams, StreamRequest request, const CheckedRequest& checked,
                     Share connection, ClientOutput& output) noexcept;

  std::vector<std::unique_ptr<PipelineStreams>> pipelines_;  // outlive the streams in table_
  StreamTable table_;
  const Thread thread_;
  RetryTimes retry_times_;
  std::uint64_t next_id_;
  bool refuses_all_ = false;
};

}  // namespace millrace
