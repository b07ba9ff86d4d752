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
#include "service/admin/history.h"
#include "service/admin/live_lists.h"
#include "service/admin/readiness.h"
#include "service/config/access_files.h"
#include "service/config/drain_times.h"
#include "service/config/options.h"
#include "service/log/log.h"
#include "service/log/recent_log.h"
#include "service/pipelines/io_thread.h"
#include "service/pipelines/pipeline.h"
#include "service/recorder/recording.h"
#include "service/recorder/recording_upkeep.h"
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

// The service: the io threads, which accept clients, the pipelines, the listeners for workers and
// the admin listener. The thread that calls run() handles the signals and serves the admin
// listener. Confined to that thread, except for the callbacks of pipelines and io threads.
class Server {
 public:
  // Binds all listeners, so that errors are reported before any thread starts. Throws
  // std::runtime_error with a line that names the listener, and the exceptions of Devices. `writer`
  // must outlive it.
  Server(const Configuration& configuration, LogWriter& writer);
  ~Server();

  // Serves until SIGTERM, SIGINT or the failure of a device, and then drains; a second signal ends
  // the drain. Returns true if every stream was drained in time.
  bool run();
  // A sentence for each device that has failed.
  const std::vector<std::string>& failures() const { return device_watch_.failures(); }

  // The addresses of the listeners, with the real ports instead of 0; "off" if there is no
  // listener.
  Tcp::endpoint websocket() const;
  std::string zeromq() const;
  Tcp::endpoint admin() const;
  std::string workers_remote() const;
  Log& log() { return log_; }  // the log of the thread that calls run()

 private:
  void make_recording();
  void make_pipelines();
  PipelineCallbacks callbacks(Log& log, const std::string& pipeline);
  void listen();
  void listen_for_workers(const Executor& first);
  WorkerServerSettings worker_server_settings();
  Sources sources() const;

  HttpAnswer answer(const HttpQuery& query);
  HttpAnswer metrics();
  Readiness readiness() const;

  Task<> handle_signals();
  Task<> handle_hangups();
  bool reload();  // false if it was refused
  void apply(Configuration configuration) noexcept;
  void apply(AccessFiles access);
  void record_load();
  Task<> watch_clock();
  Task<> watch_threads();
  // The reasons in the answer of /livez; empty if the process works.
  std::vector<std::string> not_alive_reasons() const;
  void apply_pressure(Overload action, std::uint64_t spare);
  void device_failed(std::size_t device, const DeviceLost& why);
  // These two do not allocate: drain() does the work.
  void begin_drain(const LimitOptions& limits);
  void cut_off(const char* why);
  Task<> drain();
  void enter_phase(std::string_view phase);
  void post_drains();
  void post_hub_drains();
  void post_cut_offs();
  void report_cut_off();
  void post_hand_overs();
  Time seal_deadline() const;
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
  // Created early: a signal during the construction is not lost and does not kill the process.
  net::basic_signal_set<Executor> signals_{main_.get_executor(), SIGTERM, SIGINT};
  net::basic_signal_set<Executor> hangups_{main_.get_executor(), SIGHUP};
  ServiceStats stats_;
  SharedAdmission admission_;
  Current<TlsContext> admin_tls_;  // for the admin listener; null: without TLS
  Budget slab_bytes_;
  RemoteBudgets remote_budgets_;
  DeviceWatch device_watch_;
  OverloadWatch overload_watch_{log_, stats_, [this](Overload action, std::uint64_t spare) {
                                  apply_pressure(action, spare);
                                }};
  std::optional<Recording> recording_;     // empty: nothing is recorded; outlives the threads
  std::optional<RecordingUpkeep> upkeep_;  // if nothing is recorded, and there is a directory
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::vector<std::unique_ptr<Pipeline>> pipelines_;
  SlabThreads slab_threads_{device_watch_.devices().usable().size()};
  std::optional<WorkerServer> worker_server_, remote_server_;
  std::optional<HttpServer> admin_;
  std::optional<Exporter> exporter_;
  History history_;
  std::optional<LiveLists> lists_;
  EndlessTask signal_handling_{main_.get_executor(), [this] { return handle_signals(); }};
  EndlessTask hangup_handling_{main_.get_executor(), [this] { return handle_hangups(); }};
  EndlessTask clock_watch_{main_.get_executor(), [this] { return watch_clock(); }};
  EndlessTask thread_watching_{main_.get_executor(), [this] { return watch_threads(); }};
  EndlessTask memory_watch_{main_.get_executor(),
                            [this] { return overload_watch_.watch(main_.get_executor()); }};
  std::optional<EndlessTask> worker_serving_, remote_serving_;
  Time last_eviction_{};              // when the last stream was evicted because memory was short
  Timer step_{main_.get_executor()};  // the wait of drain(); cancelled when it can continue
  EndlessTask drain_{main_.get_executor(), [this] { return drain(); }};
  DrainTimes times_;
  std::string_view phase_;  // the phase of the drain
  // Numbers of threads and pipelines to which drain() has posted its requests.
  std::size_t draining_threads_ = 0, draining_hubs_ = 0, cut_threads_ = 0, handing_threads_ = 0;
  std::size_t undrained_ = 0;   // io threads with connections
  std::size_t unrecorded_ = 0;  // io threads that have not handed over their last records
  bool sealed_ = true;          // the recorder has ended, or nothing is recorded
  const char* cut_off_reason_ = "the [limits] drain time is over";
  std::atomic<bool> cut_ = false;  // an io thread has cut a connection
  bool draining_ = false;
  bool signalled_ = false;  // the first signal was received
  bool drained_ = true;     // no connection was cut
};

}  // namespace millrace
