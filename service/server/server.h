// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitoring/exporter.h"
#include "monitoring/service_stats.h"
#include "service/admin/live_lists.h"
#include "service/config/drain_times.h"
#include "service/config/options.h"
#include "service/log/log.h"
#include "service/log/recent_log.h"
#include "service/pipelines/io_thread.h"
#include "service/pipelines/pipeline.h"
#include "service/server/end_limit.h"
#include "service/watch/device_watch.h"
#include "service/watch/overload_watch.h"
#include "service/watch/supervisor.h"
#include "service/watch/thread_watch.h"
#include "transport/http/server.h"
#include "transport/net/endless_task.h"
#include "transport/net/listener.h"
#include "workers/hub/server.h"

namespace millrace {

// The service: io threads, which accept clients, the pipelines, the listeners for workers, the
// admin listener. The thread that calls run() has the signals and the admin listener.
class Server {
 public:
  // Binds everything, so that what cannot be had is known before anything runs. Throws
  // std::runtime_error with a line that names the listener, and as Devices does.
  // `writer` outlives it.
  Server(const Configuration& configuration, LogWriter& writer);
  ~Server();

  // Serves until SIGTERM, SIGINT or the failure of a device, and a drain, or a second signal. True
  // if all that was live was drained in time.
  bool run();
  // A sentence for each device that has failed.
  const std::vector<std::string>& failures() const { return device_watch_.failures(); }

  // Where it listens, ports that were 0 resolved.
  Tcp::endpoint websocket() const;
  std::string zeromq() const;  // "off" where it does not
  Tcp::endpoint admin() const;
  std::string workers_remote() const;  // "off" where it is
  Log& log() { return log_; }          // of the thread that runs it

 private:
  void make_pipelines();
  PipelineCalls calls(Log& log, const std::string& pipeline);
  void listen();
  void listen_for_workers(const Executor& first);
  WorkerReception reception();
  Sources sources() const;

  HttpAnswer answer(const HttpQuery& query);
  HttpAnswer metrics();
  // Why streams should go elsewhere; none while the service is ready.
  std::vector<std::string> unready() const;

  Task<> handle_signals();
  Task<> handle_hangups();
  bool reload();  // false if it was refused
  void apply(Configuration configuration) noexcept;
  void note_loaded();
  Task<> watch_clock();
  Task<> watch_threads();
  std::vector<std::string> why_dead() const;
  void relieve(Overload action, std::uint64_t spare);
  void end_for(std::size_t device, const DeviceLost& why);
  // Neither allocates memory. What they ask for is done by drain().
  void begin_drain(const LimitOptions& limits);
  void cut_off(const char* why);
  Task<> drain();
  void enter(std::string_view phase);
  void post_drains();
  void post_hub_drains();
  void post_cut_offs();
  void note_cut_off();
  void finish();

  EndLimit end_limit_;  // destroyed last
  Configuration configuration_;
  const Options& options_{configuration_.options};
  LogWriter& writer_;
  ThreadStats main_stats_;
  Log log_{writer_, main_stats_};
  RecentLog recent_log_{writer_};
  Supervisor supervisor_;
  ThreadWatch thread_watch_;
  const ConnectionLimits limits_;
  Budget large_answers_{HttpServer::most_large};
  net::io_context main_{1};
  // From the start: one that comes while the service is being made is not lost, nor kills it.
  net::basic_signal_set<Executor> signals_{main_.get_executor(), SIGTERM, SIGINT};
  net::basic_signal_set<Executor> hangups_{main_.get_executor(), SIGHUP};
  ServiceStats stats_;
  SharedAdmission admission_;
  Budget slab_bytes_;
  RemoteBudgets remote_budgets_;
  DeviceWatch device_watch_;
  OverloadWatch overload_watch_{
      log_, stats_, [this](Overload action, std::uint64_t spare) { relieve(action, spare); }};
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::vector<std::unique_ptr<Pipeline>> pipelines_;
  SlabThreads slab_threads_{device_watch_.devices().usable().size()};
  std::optional<WorkerServer> worker_server_, remote_server_;
  std::optional<HttpServer> admin_;
  std::optional<Exporter> exporter_;
  std::optional<LiveLists> lists_;
  EndlessTask signal_handling_{main_.get_executor(), [this] { return handle_signals(); }};
  EndlessTask hangup_handling_{main_.get_executor(), [this] { return handle_hangups(); }};
  EndlessTask clock_watch_{main_.get_executor(), [this] { return watch_clock(); }};
  EndlessTask thread_watching_{main_.get_executor(), [this] { return watch_threads(); }};
  EndlessTask memory_watch_{main_.get_executor(),
                            [this] { return overload_watch_.watch(main_.get_executor()); }};
  std::optional<EndlessTask> worker_serving_, remote_serving_;
  Time evicted_{};                    // the last stream, for want of memory
  Timer step_{main_.get_executor()};  // of a drain; cancelled when there is something to do
  EndlessTask drain_{main_.get_executor(), [this] { return drain(); }};
  DrainTimes times_;
  std::string_view phase_;                                          // of a drain
  std::size_t told_threads_ = 0, told_hubs_ = 0, cut_threads_ = 0;  // those that were posted to
  std::size_t undrained_ = 0;                                       // io threads with connections
  const char* why_cut_off_ = "the time for it is over";
  std::atomic<bool> cut_ = false;  // a connection, by its io thread
  bool draining_ = false;
  bool signalled_ = false;  // by the first of two signals
  bool drained_ = true;     // no connection was cut
};

}  // namespace millrace
