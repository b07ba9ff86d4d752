// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <optional>
#include <string>
#include <thread>

#include "base/budget.h"
#include "commands/train_serve/train_options.h"
#include "monitoring/exporter.h"
#include "monitoring/service_stats.h"
#include "service/log/log.h"
#include "service/watch/supervisor.h"
#include "training/serving/plan_host.h"
#include "training/serving/stats.h"
#include "transport/http/server.h"
#include "transport/net/endless_task.h"
#include "transport/net/net.h"
#include "workers/hub/server.h"

namespace millrace {

// The server of a plan's batches: the thread of the trainers, and the thread that calls run(),
// which handles the signals and serves the admin listener. Confined to that thread.
class TrainServer {
 public:
  // Binds all listeners, so that errors are reported before any thread starts. Throws
  // std::runtime_error with a line that names the listener. `writer` must outlive it.
  TrainServer(const TrainOptions& options, training::ServedPlan served, LogWriter& writer);
  ~TrainServer();

  // Serves until SIGTERM or SIGINT. Trainers then receive Bye.
  void run();

  // The addresses of the listeners, with the real ports instead of 0; "off" without one.
  std::string workers() const;
  std::string workers_remote() const;
  Tcp::endpoint admin() const { return admin_->endpoint(); }
  Log& log() { return log_; }  // the log of the thread that calls run()

 private:
  WorkerServerSettings server_settings();
  void listen();
  Task<> handle_signals();
  HttpAnswer answer(const HttpQuery& query);
  std::vector<std::string> not_ready_reasons() const;
  void stop_home();

  const TrainOptions options_;
  ThreadStats main_stats_, home_stats_;
  Log log_;
  Log home_log_;  // log of the trainers' thread
  ServiceStats service_stats_;
  training::TrainingStats stats_;
  Budget slab_bytes_;
  RemoteBudgets remote_budgets_;
  Budget large_answers_{HttpServer::most_large};
  net::io_context main_{1}, home_{1};
  net::executor_work_guard<Executor> home_work_{home_.get_executor()};
  // Created early: a signal during the construction is not lost and does not kill the process.
  net::basic_signal_set<Executor> signals_{main_.get_executor(), SIGTERM, SIGINT};
  std::optional<training::PlanHost> host_;
  SlabThreads threads_{training::plan_host_threads};
  std::optional<WorkerServer> server_, remote_server_;
  std::optional<EndlessTask> serving_, remote_serving_;
  std::optional<HttpServer> admin_;
  std::optional<Exporter> exporter_;
  EndlessTask signal_handling_{main_.get_executor(), [this] { return handle_signals(); }};
  Supervisor supervisor_;
  bool draining_ = false;
  std::jthread home_thread_;
};

}  // namespace millrace
