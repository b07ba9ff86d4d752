// SPDX-License-Identifier: Apache-2.0
#include "commands/train_serve/train_server.h"

#include <chrono>
#include <utility>

#include "base/quiet_thread.h"
#include "service/admin/admin_pages.h"
#include "service/pipelines/make_listener.h"
#include "service/pipelines/run_until_stopped.h"
#include "transport/net/listener.h"

namespace millrace {

namespace {

// The time that connections get to send their last message.
constexpr auto end_limit = std::chrono::seconds(1);
// Bytes of incomplete messages of all trainers over TCP. Their messages are short.
constexpr std::uint64_t unread_bytes = std::uint64_t{64} << 20;

void write(Log& log, const WorkerEvent& event) {
  const auto write = event.warning ? &Log::warning : &Log::info;
  (log.*write)(event.what, {{"worker", event.worker}, {"stream", event.stream}, {"why", event.why}},
               Clock::now());
}

}  // namespace

TrainServer::TrainServer(const TrainOptions& options, training::ServedPlan served,
                         LogWriter& writer)
    : options_(options),
      log_(writer, main_stats_),
      home_log_(writer, home_stats_),
      slab_bytes_(options.slab_bytes),
      remote_budgets_(unread_bytes) {
  training::PlanHostSettings settings;
  settings.served = std::move(served);
  settings.log = [this](const WorkerEvent& event) { write(home_log_, event); };
  host_.emplace(home_, std::move(settings), slab_bytes_, threads_, stats_);
  listen();
  Sources sources;
  sources.service.push_back(&service_stats_);
  sources.threads = {&main_stats_, &home_stats_};
  sources.log.push_back(&writer.stats());
  for (const auto* server : {&server_, &remote_server_})
    if (*server) sources.worker_servers.push_back(&(*server)->stats());
  sources.training.push_back(&stats_);
  exporter_.emplace(std::move(sources));
}

TrainServer::~TrainServer() { stop_home(); }

void TrainServer::listen() {
  const Executor home = home_.get_executor();
  if (!options_.workers.empty()) {
    make_listener("workers", [&] { server_.emplace(home, options_.workers, server_settings()); });
    serving_.emplace(home, [this] { return server_->serve(); });
  }
  if (const auto& remote = options_.workers_remote) {
    make_listener("workers_remote", [&] {
      remote_server_.emplace(home, endpoint_of(*remote), server_settings(), remote_budgets_);
    });
    remote_serving_.emplace(home, [this] { return remote_server_->serve(); });
  }
  net::io_context* const main[] = {&main_};
  auto admin = make_listener("admin", [&] { return listen_on(endpoint_of(options_.admin), main); });
  admin_.emplace(
      std::move(admin.front()), [this](const HttpQuery& query) { return answer(query); },
      large_answers_, options_.names);
}

WorkerServerSettings TrainServer::server_settings() {
  WorkerServerSettings settings;
  settings.find = [this](std::string_view) { return PipelineHost{&*host_, &home_}; };
  settings.log = [this](const WorkerEvent& event) { write(home_log_, event); };
  return settings;
}

std::string TrainServer::workers() const {
  return options_.workers.empty() ? "off" : "unix:" + options_.workers;
}

std::string TrainServer::workers_remote() const {
  if (!remote_server_) return "off";
  return "tcp://" + readable({options_.workers_remote->host, remote_server_->port()});
}

void TrainServer::run() {
  signal_handling_.start();
  admin_->start();
  if (serving_) serving_->start();
  if (remote_serving_) remote_serving_->start();
  home_thread_ = quiet_thread("millrace-train", [this] { run_until_stopped(home_, home_log_); });
  supervisor_.ready("serving");
  run_until_stopped(main_, log_);
  stop_home();
}

void TrainServer::stop_home() {
  home_.stop();
  if (home_thread_.joinable()) home_thread_.join();
  host_->stop();  // sessions that are destroyed later must not use it
}

Task<> TrainServer::handle_signals() {
  const auto [failed, first] = co_await signals_.async_wait(no_throw);
  if (failed) co_return;
  draining_ = true;
  service_stats_.draining.set(1);
  exporter_->forget();
  log_.info("stopping", {{"note", "trainers attach again when a server listens"}});
  supervisor_.stopping("trainers receive Bye");
  if (stats_.trainers.value() > 0) {
    net::post(home_, [this] { host_->stop(); });
    Timer limit(main_.get_executor(), end_limit);
    co_await limit.async_wait(no_throw);
  }
  main_.stop();
}

std::vector<std::string> TrainServer::not_ready_reasons() const {
  if (!draining_) return {};
  return {"the server is stopping"};
}

HttpAnswer TrainServer::answer(const HttpQuery& query) {
  if (query.path() == "/livez") return alive_page({});
  if (query.path() == "/readyz") return ready_page(not_ready_reasons());
  if (query.path() != "/metrics")
    return {.status = 404,
            .body = R"({"error":{"message":"the pages are /metrics /livez /readyz"}})"};
  service_stats_.ready.set(not_ready_reasons().empty());
  return {.type = std::string(Exporter::content_type), .body = exporter_->text(Clock::now())};
}

}  // namespace millrace
