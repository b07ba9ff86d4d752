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

#include "monitoring/service_stats.h"
#include "service/log/log.h"
#include "service/pipelines/pipeline.h"
#include "service/pipelines/thread_admission.h"
#include "transport/net/wakeup.h"
#include "transport/sessions/millrace_v1/millrace_v1.h"
#include "transport/sessions/session_scope.h"
#include "transport/sessions/stream_server.h"
#include "transport/sessions/zeromq_server.h"

namespace millrace {

inline constexpr auto tick_period = std::chrono::seconds(1);

// One io thread: an io_context of its own, the clients that it accepted, and their streams.
// Everything is made before run() and stays on its thread from then on, but for post().
class IoThread {
 public:
  IoThread(std::uint32_t index, std::size_t max_streams, const ConnectionLimits& limits,
           LogWriter& writer);
  ~IoThread();

  net::io_context& context() { return context_; }
  // Once the pipelines exist, which outlive it as `shared` does. Then listen().
  void set_pipelines(std::span<const std::unique_ptr<Pipeline>> pipelines, SharedAdmission& shared,
                     std::uint32_t threads);
  void listen(Acceptor acceptor, ClientGate& gate);
  // Clients over ZeroMQ too. Throws std::runtime_error that names the endpoint.
  void listen_zeromq(const ZeromqBinding& binding, ClientGate& gate);

  // Starts the thread.
  void run();
  // Runs `work` on the thread. Thread-safe.
  void post(std::function<void()> work) { net::post(context_, std::move(work)); }

  // On the thread: no new clients. Until `notice_ends`, or until no stream is left, streams
  // continue, and `goaway` is spread over that time. Then every stream ends. `drained` is called on
  // the thread when no connection is left, and no row of a client that is gone. Survives a failed
  // allocation; where one fails in `drained`, it is called again.
  void drain(Time notice_ends, std::function<void()> drained);
  // The thread does what there is to do for want of memory, as soon as it can and until it is told
  // otherwise; the last word counts. Its streams may take `spare` bytes more. Its largest ends,
  // once, only if so said: another thread's may be larger. Thread-safe.
  void relieve(Overload action, std::uint64_t spare, bool ends_largest);
  // Bytes that its largest stream had when that was last wanted; 0 before. Thread-safe.
  std::size_t largest() const { return largest_.load(std::memory_order_relaxed); }
  // On the thread, after drain(): cuts every connection and gives up the rows that workers still
  // have, so that `drained` is called soon. True if there was anything to cut.
  bool cut_off();
  // Ends the thread, whatever it is doing. Thread-safe.
  void stop();

  ThreadAdmission& admission() { return *admission_; }
  Log& log() { return log_; }  // the thread's own
  Tcp::endpoint endpoint() const { return server_->endpoint(); }
  // Where it listens over ZeroMQ; nothing where it does not.
  const std::optional<ZeromqServer>& zeromq() const { return zeromq_; }
  const DoorStats& door_stats() const { return door_stats_; }
  const ThreadStats& thread_stats() const { return thread_stats_; }
  // Counts up every tick_period, unless the thread hangs. Thread-safe.
  std::uint64_t ticks() const { return ticks_.value(); }

 private:
  void relieve_now();
  void share_out(std::uint64_t spare);
  Task<> measure_lag();
  Task<> end_streams();
  Task<> give_notice();
  bool has_clients() const;

  const std::uint32_t index_;
  const ConnectionLimits usual_;
  ConnectionLimits limits_ = usual_;
  std::atomic<std::size_t> largest_ = 0;  // relaxed: a figure
  // What relieve() said last; each is right without the others.
  std::atomic<Overload> action_ = Overload::none;
  std::atomic<std::uint64_t> spare_ = 0;
  std::atomic<bool> ends_largest_ = false;
  std::atomic<bool> told_ = false;  // and the thread has yet to hear it
  net::io_context context_{1};
  net::executor_work_guard<Executor> keep_{context_.get_executor()};
  DoorStats door_stats_;
  ThreadStats thread_stats_;
  Counter ticks_;
  Log log_;
  SessionScope scope_;
  ReturnBox returns_;
  Wakeup returned_;
  std::unique_ptr<ThreadAdmission> admission_;
  EndlessTask lag_{context_.get_executor(), [this] { return measure_lag(); }};
  std::optional<MillraceV1> millrace_v1_;
  std::optional<StreamServer> server_;
  std::optional<ZeromqServer> zeromq_;
  std::function<void()> drained_;  // from drain() on
  Time notice_ends_{};
  Timer drain_step_{context_.get_executor()};  // cancelled by drain(), and when no stream is left
  EndlessTask drain_{context_.get_executor(), [this] { return end_streams(); }};
  bool cut_off_ = false;
  bool started_ = false;  // by run(), which may have failed half-way
  std::jthread thread_;
};

}  // namespace millrace
