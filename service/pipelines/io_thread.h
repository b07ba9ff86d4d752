// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "monitoring/service_stats.h"
#include "service/log/log.h"
#include "service/pipelines/client_protocols.h"
#include "service/pipelines/pipeline.h"
#include "service/pipelines/thread_admission.h"
#include "service/recorder/thread_recording.h"
#include "transport/net/wakeup.h"
#include "transport/sessions/session_scope.h"
#include "transport/sessions/stream_server.h"
#include "transport/sessions/zeromq/zeromq_server.h"

namespace millrace {

inline constexpr auto tick_period = std::chrono::seconds(1);

// One io thread: its io_context, the clients that it accepted, and their streams.
//
// From run() on it is confined to its thread, except for the members marked thread-safe. Before
// that, one thread sets it up: the constructor, set_pipelines(), listen(), listen_zeromq(), run().
class IoThread {
 public:
  IoThread(std::uint32_t index, std::size_t max_streams, const ConnectionLimits& limits,
           LogWriter& writer);
  ~IoThread();

  net::io_context& context() { return context_; }
  // Call it before listen(). The pipelines, `shared` and `recording` must outlive this. `recording`
  // is the thread's part of it, null if nothing is recorded. `threads` is the number of io threads.
  void set_pipelines(std::span<const std::unique_ptr<Pipeline>> pipelines, SharedAdmission& shared,
                     ThreadRecording* recording, std::uint32_t threads);
  // Accepts clients of these protocols. Call it first for the listener of endpoint().
  // `credential`: that all of them have.
  void listen(Acceptor acceptor, ClientProtocols protocols, ClientGate& gate,
              std::optional<Credential> credential = {});
  // Also accepts clients over ZeroMQ. Throws std::runtime_error that names the endpoint.
  void listen_zeromq(const ZeromqBinding& binding, ClientGate& gate);

  // Starts the thread.
  void run();
  // Runs `work` on the thread. Thread-safe.
  void post(std::function<void()> work) { net::post(context_, std::move(work)); }

  // Call it on the thread. Stops accepting clients. Until `notice_ends`, or until no stream is
  // left, streams continue, and `goaway` is sent to them, spread over that time. Then ends every
  // stream. Calls `drained` on the thread when neither a connection nor a row of a disconnected
  // client is left. If an allocation fails, the drain continues; if one fails in `drained`, it is
  // called again.
  void drain(Time notice_ends, std::function<void()> drained);
  // Call it on the thread, after `drained`, if there is a recording. Hands the last records of its
  // streams to the recorder, as soon as the queue has room, and then calls `handed_over` on the
  // thread. If an allocation fails in it, it is called again.
  void finish_records(std::function<void()> handed_over);
  // Applies a memory-pressure action on this thread until the next call; the latest call counts.
  // Its streams may take `spare` more bytes. With `evicts_largest` it evicts its largest stream,
  // once: the caller compares the threads and sets this for one of them. Thread-safe.
  void apply_pressure(Overload action, std::uint64_t spare, bool evicts_largest);
  // Reclaimable bytes of the thread's largest stream, as of the last action; 0 if that was less
  // than close_idle. Thread-safe.
  std::size_t largest_stream_bytes() const {
    return largest_stream_bytes_.load(std::memory_order_relaxed);
  }
  // Call it on the thread, after drain(). Cuts every connection and no longer waits for rows that
  // workers have, so that `drained` is called soon. Returns false if no client and no stream was
  // left to cut.
  bool cut_off();
  // Ends the thread, whatever it is doing, and joins it. Call it on another thread.
  void stop();

  ThreadAdmission& admission() { return *admission_; }
  Log& log() { return log_; }  // the log of this thread
  // The server of each listener, in the order of listen().
  std::span<const std::unique_ptr<StreamServer>> servers() const { return servers_; }
  Tcp::endpoint endpoint() const { return servers_.front()->endpoint(); }
  // The ZeroMQ listener; nullopt if this thread has none.
  const std::optional<ZeromqServer>& zeromq() const { return zeromq_; }
  const TransportStats& transport_stats() const { return transport_stats_; }
  const ThreadStats& thread_stats() const { return thread_stats_; }
  // Increases every tick_period, unless the thread hangs. Thread-safe.
  std::uint64_t ticks() const { return ticks_.value(); }

 private:
  void apply_posted_pressure();
  void end_oldest_over();
  void limit_memory(std::uint64_t spare);
  Task<> measure_lag();
  Task<> hand_over_records();
  Task<> run_drain();
  Task<> send_goaways();
  bool has_clients() const;

  const std::uint32_t index_;
  const ConnectionLimits configured_;
  ConnectionLimits limits_ = configured_;  // a shorter message_idle while memory is short
  std::atomic<std::size_t> largest_stream_bytes_ = 0;  // relaxed: guards no other data
  // The latest arguments of apply_pressure(). They need not be of the same call.
  std::atomic<Overload> action_ = Overload::none;
  std::atomic<std::uint64_t> spare_ = 0;
  std::atomic<bool> evicts_largest_ = false;
  std::atomic<bool> pressure_posted_ = false;  // apply_posted_pressure() is queued
  net::io_context context_{1};
  net::executor_work_guard<Executor> work_guard_{context_.get_executor()};
  TransportStats transport_stats_;
  ThreadStats thread_stats_;
  Counter ticks_;
  Log log_;
  SessionScope scope_;
  ReturnBox returns_;
  Wakeup returned_;
  ThreadRecording* recording_ = nullptr;  // null: nothing is recorded
  std::unique_ptr<ThreadAdmission> admission_;
  EndlessTask lag_{context_.get_executor(), [this] { return measure_lag(); }};
  Timer hand_over_step_{context_.get_executor()};  // cancelled by finish_records()
  EndlessTask hand_over_{context_.get_executor(), [this] { return hand_over_records(); }};
  std::function<void()> handed_over_;       // set by finish_records()
  std::vector<ClientProtocols> protocols_;  // those of each server
  std::vector<std::unique_ptr<StreamServer>> servers_;
  std::optional<ZeromqServer> zeromq_;
  std::function<void()> drained_;  // set by drain()
  Time notice_ends_{};
  Timer drain_step_{context_.get_executor()};  // cancelled by drain(), and when no stream is left
  EndlessTask drain_{context_.get_executor(), [this] { return run_drain(); }};
  bool cut_off_ = false;
  bool started_ = false;  // set by run(), which may have thrown after that
  std::jthread thread_;
};

}  // namespace millrace
