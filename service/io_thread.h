// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "service/log.h"
#include "service/pipeline.h"
#include "service/stats.h"
#include "service/stream_door.h"
#include "transport/session_scope.h"
#include "transport/stream_server.h"
#include "transport/wakeup.h"
#include "transport/zeromq_server.h"

namespace millrace {

// One io thread: an io_context of its own, the clients that it accepted, and their streams.
// Everything is made before run() and stays on its thread from then on, but for post().
class IoThread {
 public:
  IoThread(std::uint32_t index, std::size_t max_streams, const ConnectionLimits& limits,
           LogWriter& writer);
  ~IoThread();

  net::io_context& context() { return context_; }
  // Once the pipelines exist, which outlive it as `admission` does. Then listen().
  void open_door(std::span<const std::unique_ptr<Pipeline>> pipelines, Admission& admission,
                 std::uint32_t threads);
  void listen(Acceptor acceptor, Budget& sockets);
  // Clients over ZeroMQ too. Throws std::runtime_error that names the endpoint.
  void listen_zeromq(const std::string& endpoint, Budget& sockets);

  // Starts the thread.
  void run();
  // Runs `work` on the thread. Thread-safe.
  void post(std::function<void()> work) { net::post(context_, std::move(work)); }

  // On the thread: nobody new, every stream ends; `drained` is called, here, when no connection is
  // left, and no row of those whose client is gone.
  void drain(std::function<void()> drained);
  // On the thread: cuts every connection.
  void stop_sessions() { scope_.stop(); }
  // Ends the thread, whatever it is doing. Thread-safe.
  void stop();

  StreamDoor& door() { return *door_; }
  Log& log() { return log_; }  // the thread's own
  Tcp::endpoint endpoint() const { return server_->endpoint(); }
  // Where it listens over ZeroMQ; nothing where it does not.
  const std::optional<ZeromqServer>& zeromq() const { return zeromq_; }
  const DoorStats& door_stats() const { return door_stats_; }
  const ThreadStats& thread_stats() const { return thread_stats_; }

 private:
  void work();
  Task<> measure_lag();
  Task<> wait_drained(std::function<void()> drained);

  const std::uint32_t index_;
  net::io_context context_{1};
  net::executor_work_guard<Executor> keep_{context_.get_executor()};
  DoorStats door_stats_;
  ThreadStats thread_stats_;
  Log log_;
  SessionScope scope_;
  ReturnBox returns_;
  Wakeup returned_;
  std::unique_ptr<StreamDoor> door_;
  std::optional<StreamServer> server_;
  std::optional<ZeromqServer> zeromq_;
  std::jthread thread_;
};

}  // namespace millrace
