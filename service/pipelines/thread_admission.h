// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/files/current.h"
#include "service/log/log.h"
#include "service/pipelines/name_book.h"
#include "service/pipelines/pipeline.h"
#include "service/pipelines/pipeline_streams.h"
#include "service/pipelines/request_check.h"
#include "service/pipelines/stream_permits.h"
#include "service/recorder/thread_recording.h"
#include "streams/resume/detached_list.h"
#include "streams/resume/resumable_streams.h"
#include "streams/stream_table.h"
#include "transport/access/resume_keys.h"
#include "transport/net/retry_times.h"
#include "transport/sessions/client_gate.h"
#include "transport/sessions/stream_admission.h"

namespace millrace {

// The objects that the admissions of all io threads share. Thread-safe.
struct SharedAdmission {
  NameBook names;                 // names of open streams
  Budget connections;             // 1 for each stream, until its last row is done
  ClientGate gate;                // the gate of all listeners for clients
  const std::string name_prefix;  // prefix of names that the service chooses
  // The number of the first stream: different for each process, so that a worker that attaches to
  // the next one cannot mean a stream of the one before.
  const std::uint64_t first_stream = 0;
  // The number of streams that memory allows. Relaxed: guards no other data.
  std::atomic<std::uint64_t> streams = std::numeric_limits<std::uint64_t>::max();
  const bool explain = false;  // streams may ask for explanations
  // Sign and verify the tokens of streams. Never null.
  Current<ResumeKeys> resume_keys{std::make_shared<const ResumeKeys>(ResumeKeys::random())};
  const Duration resume_window = std::chrono::seconds(15);  // that a stream waits for its client
  const std::size_t resume_buffer = 1 << 20;  // bytes of messages that a stream keeps for it
  DetachedList detached{};                    // the streams that wait for their clients
  // Ends a waiting stream on its thread. Thread-safe.
  std::function<void(const DetachedList::Entry&)> end_waiting = {};
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
                                                        const ClientIdentity& client,
                                                        ClientOutput& output) override;
  [[nodiscard]] std::optional<RequestError> refusal(const StreamRequest& request,
                                                    const ClientIdentity& client) override;
  [[nodiscard]] std::optional<std::uint32_t> thread_of(const StreamRequest& request,
                                                       const ClientIdentity& client) const override;

  // Refuses all streams from now on.
  void refuse_all() { refuses_all_ = true; }

  // Allows all streams together `more` further bytes of frames. Above that, a client is read only
  // as far as its next row needs.
  void allow(std::uint64_t more);

  StreamTable& table() { return table_; }
  ResumableStreams& resumables() { return resumables_; }
  StreamPermits& permits() { return permits_; }
  // The counters of pipeline i.
  const StreamStats& stats(std::size_t i) const { return pipelines_[i]->stats(); }

 private:
  // A request without an error, and the streams of its pipeline.
  struct Checked {
    PipelineStreams& streams;
    CheckedRequest request;
  };

  PipelineStreams* find(std::string_view pipeline) const;
  // The rights of the client, if it may use the pipeline of the request. The request then has the
  // whole name of its stream, with the tenant. The functions below are called after it.
  Result<Grant, RequestError> identify(StreamRequest& request, const ClientIdentity& client) const;
  // Everything but the limits that a stream takes a part of.
  Result<Checked, RequestError> check(const StreamRequest& request);
  // The stream of a request with a token.
  struct Found {
    ResumeToken token;
    ResumableStream* stream = nullptr;  // that the request continues; null: it is opened anew
    ResumableStream* older = nullptr;   // the stream as it was before it continued elsewhere
    // True if the stream that is opened anew has the places of `older`, which ends.
    bool has_places() const { return older && older->stream().has_slot(); }
  };
  // The client that opens a stream.
  struct Opener {
    const Credential& credential;
    const Grant& grant;

    Tenant& tenant() const { return *grant.tenant; }
  };
  // Does not change the request if it refuses it. `anew`: the request continues this stream.
  Result<StreamHandle, RequestError> decide(StreamRequest& request, ClientOutput& output,
                                            const Found& anew, const Opener& by);
  RequestError no_pipeline(std::string_view asked, const Grant& grant) const;
  bool memory_short() const;
  // Build refusals with a retry time.
  RequestError busy(unsigned status, std::string parameter, std::string message, Refusal reason);
  RequestError too_many_connections();
  RequestError name_in_use();
  RequestError no_slot();
  RequestError too_many_streams(const Tenant& tenant);
  // The streams of the tenant are opened too fast; nullopt if this one may be.
  std::optional<RequestError> too_many_opens(Tenant& tenant);
  // A new stream takes a slot and a place among the connections, if need be those of a stream that
  // waits for its client. lacks_place(): the error if it cannot. take_places() takes them, and
  // takes nothing if it returns an error. `anyway`: even beyond the limits.
  std::optional<RequestError> lacks_place(PipelineStreams& streams);
  std::optional<RequestError> take_places(PipelineStreams& streams, bool anyway);
  // A token that `request` shows, if it is right for its stream.
  Result<ResumeToken, RequestError> verify(const StreamRequest& request,
                                           std::string_view pipeline) const;
  Result<ResumeToken, ResumeFault> verify_at(const StreamRequest& request,
                                             std::string_view pipeline, Duration now) const;
  // Changes nothing.
  Result<Found, RequestError> find_stream(const StreamRequest& request) const;
  Result<StreamHandle, RequestError> resume(StreamRequest& request, ClientOutput& output,
                                            const Opener& by);
  // Why a stream cannot be opened anew, apart from its name and its places.
  std::optional<RequestError> cannot_begin(const StreamRequest& request);
  Result<StreamHandle, RequestError> open_anew(const Found& found, StreamRequest& request,
                                               ClientOutput& output, const Opener& by);
  std::unique_ptr<ResumableStream> make_resumable(ResumableStream::Settings opening,
                                                  const StreamRequest& request,
                                                  const PipelineOptions& options,
                                                  const ClientFormat& format);
  // Gives the stream to the connection. `epoch` and `kept` are those of attach().
  StreamHandle connect(ResumableStream& stream, ClientOutput& output, std::uint32_t epoch,
                       std::uint64_t n, std::optional<bool> kept, Time now, const Opener& by);
  // noexcept: if an allocation fails, the process ends, as a half-made stream could not be removed.
  // `share`: the stream's place among those of the tenant.
  // Requires: the name, if there is one, and the places are taken. `opening`: of a stream that may
  // be resumed; it has the numbers of the token.
  StreamHandle admit(const Checked& checked, StreamRequest request, ClientOutput& output,
                     const std::optional<ResumableStream::Settings>& opening, const Opener& by,
                     Share share) noexcept;
  NameBook::Holder holder_of(const std::optional<ResumableStream::Settings>& opening) const;

  std::vector<std::unique_ptr<PipelineStreams>> pipelines_;  // outlive the streams in table_
  StreamTable table_;
  const Thread thread_;
  StreamPermits permits_;
  ResumableStreams resumables_;
  RetryTimes retry_times_;
  std::uint64_t next_id_;
  bool refuses_all_ = false;
};

}  // namespace millrace
