// SPDX-License-Identifier: Apache-2.0
#include "service/server/server.h"

#include <algorithm>
#include <future>
#include <random>
#include <stdexcept>
#include <utility>

#include "base/file_descriptor.h"
#include "service/admin/admin_pages.h"
#include "service/admin/pages.h"
#include "service/config/descriptors.h"
#include "service/config/edge/edge_rules.h"
#include "service/config/memory_bounds.h"
#include "service/config/toml/units.h"
#include "service/log/wall_clock.h"
#include "service/pipelines/make_listener.h"
#include "service/pipelines/pipeline_list.h"
#include "service/pipelines/run_until_stopped.h"

namespace millrace {

namespace {

// Random, so that names chosen by the service differ from those of an earlier run.
std::string random_name_prefix() {
  constexpr char digits[] = "0123456789abcdef";
  std::random_device random;
  std::string name = "s";
  for (int i = 0; i < 8; ++i) name += digits[random() % 16];
  return name + "-";
}

// Below 2^52, so that each number of a stream is exact in JSON.
std::uint64_t random_first_stream() {
  return std::uint64_t{std::random_device()() % (1u << 20)} << 32;
}

// The time between two evictions: the memory of the first stream is free when its connection has
// ended.
constexpr auto eviction_period = std::chrono::seconds(1);

// A text message may have this many bytes more than the longest message to the worker.
constexpr std::size_t command_envelope = 1024;

ConnectionLimits connection_limits(const LimitOptions& limits) {
  ConnectionLimits connection;
  connection.message = limits.message;
  connection.text = limits.text + command_envelope;
  connection.unsent = limits.send_buffer;
  const EdgeRules rules = edge_rules(limits.is_public);
  connection.messages = rules.messages;
  connection.controls = rules.controls;
  return connection;
}

void write(Log& log, const WorkerEvent& event, std::string_view pipeline) {
  const auto write = event.warning ? &Log::warning : &Log::info;
  (log.*write)(event.what,
               {{"pipeline", pipeline},
                {"worker", event.worker},
                {"stream", event.stream},
                {"why", event.why},
                {"moved", event.streams ? std::to_string(event.streams->moved) : ""},
                {"waiting", event.streams ? std::to_string(event.streams->waiting) : ""}},
               Clock::now());
}

AccessFiles access_of(const Configuration& configuration) {
  auto files = load_access(configuration);
  if (!files) throw std::runtime_error(files.error());
  return *std::move(files);
}

}  // namespace

Server::Server(const Configuration& configuration, LogWriter& writer)
    : configuration_(configuration),
      writer_(writer),
      limits_(connection_limits(options_.limits)),
      admission_{
          .names = {},
          .connections = Budget(options_.limits.connections),
          .gate = {.sockets = Budget(sockets_for(options_.limits.connections, descriptor_limit())),
                   .addresses = AddressLimits(edge_rules(options_.limits.is_public).addresses),
                   .proxies = *ProxyList::parse(options_.listen.proxies),
                   .waiting = Budget(waiting_sockets(options_.limits.connections)),
                   .origins = options_.listen.origins,
                   .page = options_.listen.try_page ? try_page() : std::span<const PageFile>(),
                   .pipelines = pipeline_list(options_.pipelines),
                   .access = ClientAccess(wall_clock),
                   .zeromq_connections =
                       zeromq_connections(descriptor_limit(), options_.limits.connections)},
          .name_prefix = random_name_prefix(),
          .first_stream = random_first_stream(),
          .explain = options_.listen.explain || options_.listen.try_page,
          .resume_window = options_.limits.resume,
          .resume_buffer = options_.limits.resume_buffer,
          .end_waiting =
              [this](const DetachedList::Entry& entry) {
                IoThread& thread = *threads_[entry.thread];
                thread.post(
                    [&thread, entry] { thread.admission().resumables().end_waiting(entry); });
              }},
      slab_bytes_(options_.limits.slab_bytes),
      remote_budgets_(unread_bytes(options_.limits)),
      device_watch_(options_.gpu, log_) {
  apply(access_of(configuration));
  record_load();
  make_recording();
  for (std::uint32_t i = 0; i < options_.listen.threads; ++i)
    threads_.push_back(std::make_unique<IoThread>(i, most_connections, limits_, writer));
  make_pipelines();
  listen();
  exporter_.emplace(sources());
  lists_.emplace(threads_, pipelines_);
  device_watch_.log_devices();  // after all checks: a start that fails prints one line only
}

Server::~Server() {
  for (auto& thread : threads_) thread->stop();
}

void Server::make_recording() {
  if (!records(options_)) {
    if (!options_.recording.directory.empty())
      upkeep_.emplace(options_.recording, recording::Upkeep::Beside::nothing, writer_);
    return;
  }
  recording_.emplace(options_, writer_, log_, [this] {
    net::post(main_, [this] {
      sealed_ = true;
      step_.cancel();
    });
  });
  sealed_ = false;
  unrecorded_ = options_.listen.threads;
}

void Server::make_pipelines() {
  for (std::size_t i = 0; i < options_.pipelines.size(); ++i) {
    const PipelineOptions& pipeline = options_.pipelines[i];
    IoThread& home = *threads_[i % threads_.size()];
    pipelines_.push_back(std::make_unique<Pipeline>(
        pipeline, home.context(), SlabSupply{device_watch_.devices(), slab_bytes_, slab_threads_},
        most_connections, callbacks(home.log(), pipeline.name)));
  }
  stats_.buffer_limit.set(static_cast<std::int64_t>(memory_bounds(options_).frames));
  for (std::size_t i = 0; i < threads_.size(); ++i)
    threads_[i]->set_pipelines(pipelines_, admission_,
                               recording_ ? &recording_->thread(i) : nullptr,
                               static_cast<std::uint32_t>(threads_.size()));
}

PipelineCallbacks Server::callbacks(Log& log, const std::string& pipeline) {
  PipelineCallbacks callbacks;
  callbacks.log = [&log, pipeline](const WorkerEvent& event) { write(log, event, pipeline); };
  // Marked at once, so that no further worker attaches with this device.
  callbacks.device_lost = [this](std::size_t device, const DeviceLost& why) {
    device_watch_.devices().mark_lost(device);
    net::post(main_, [this, device, why] { device_failed(device, why); });
  };
  return callbacks;
}

void Server::listen() {
  std::vector<net::io_context*> contexts;
  for (auto& thread : threads_) contexts.push_back(&thread->context());
  const SocketLimits sockets{.receive_buffer = options_.listen.receive_buffer};
  const auto listen = [&](std::string_view name, const TcpAddress& at,
                          const std::optional<TcpAddress>& of, const std::string& tenant) {
    auto acceptors =
        make_listener(name, [&] { return listen_on(endpoint_of(at), contexts, sockets); });
    for (std::size_t i = 0; i < threads_.size(); ++i)
      threads_[i]->listen(
          std::move(acceptors[i]), make_protocols(options_.protocols, of, threads_[i]->admission()),
          admission_.gate,
          tenant.empty() ? std::nullopt : std::optional<Credential>(ListenerTenant{tenant}));
  };
  listen("websocket", options_.listen.websocket, std::nullopt, "");
  for (const ProtocolOptions& protocol : options_.protocols)
    if (protocol.listen)
      listen(name_of(protocol.name), *protocol.listen, protocol.listen, protocol.tenant);
  for (std::size_t i = 0; i < threads_.front()->servers().size(); ++i) {
    std::vector<StreamServer*> siblings;
    for (auto& thread : threads_) siblings.push_back(thread->servers()[i].get());
    for (StreamServer* server : siblings) server->set_siblings(siblings);
  }
  // The last thread is the home of the fewest pipelines: these are assigned from the first thread
  // on.
  if (const auto& zeromq = options_.listen.zeromq)
    make_listener("zeromq", [&] {
      threads_.back()->listen_zeromq({.endpoint = "tcp://" + readable(*zeromq)}, admission_.gate);
    });
  net::io_context* const main[] = {&main_};
  auto admin =
      make_listener("admin", [&] { return listen_on(endpoint_of(options_.listen.admin), main); });
  admin_.emplace(
      std::move(admin.front()), [this](const HttpQuery& query) { return answer(query); },
      large_answers_, options_.listen.names, &admin_tls_);
  listen_for_workers(threads_.front()->context().get_executor());
}

void Server::listen_for_workers(const Executor& first) {
  make_listener("workers", [&] {
    worker_server_.emplace(first, options_.listen.workers, worker_server_settings());
  });
  worker_serving_.emplace(first, [this] { return worker_server_->serve(); });
  const auto& remote = options_.listen.workers_remote;
  if (!remote) return;
  make_listener("workers_remote", [&] {
    remote_server_.emplace(first, endpoint_of(*remote), worker_server_settings(), remote_budgets_);
  });
  remote_serving_.emplace(first, [this] { return remote_server_->serve(); });
}

WorkerServerSettings Server::worker_server_settings() {
  WorkerServerSettings settings;
  settings.find = [this](std::string_view name) -> PipelineHost {
    for (auto& pipeline : pipelines_)
      if (pipeline->name() == name) return {&pipeline->hub(), &pipeline->home()};
    return {};
  };
  settings.log = [&log = threads_.front()->log()](const WorkerEvent& event) {
    write(log, event, {});
  };
  return settings;
}

Sources Server::sources() const {
  Sources sources;
  sources.service.push_back(&stats_);
  sources.threads.push_back(&main_stats_);
  sources.log.push_back(&recent_log_.stats());
  for (const auto& thread : threads_) {
    sources.threads.push_back(&thread->thread_stats());
    sources.websocket.push_back(&thread->transport_stats());
    if (const auto& zeromq = thread->zeromq()) {
      sources.zmq.push_back(&zeromq->stats());
      sources.zmq_sockets.push_back(&zeromq->socket_stats());
    }
  }
  for (const auto* server : {&worker_server_, &remote_server_})
    if (*server) sources.worker_servers.push_back(&(*server)->stats());
  for (std::size_t i = 0; i < pipelines_.size(); ++i) {
    PipelineSource source;
    source.name = pipelines_[i]->name();
    source.rate = pipelines_[i]->options().frames.rate;
    source.lanes.push_back(&pipelines_[i]->stats());
    for (const auto& thread : threads_) source.streams.push_back(&thread->admission().stats(i));
    sources.pipelines.push_back(std::move(source));
  }
  const auto& devices = device_watch_.devices().usable();
  for (std::size_t i = 0; i < devices.size(); ++i)
    sources.devices.push_back({devices[i].name, {&device_watch_.stats()[i]}});
  if (recording_) recording_->add_to(sources);
  if (upkeep_) upkeep_->add_to(sources);
  sources.cuda = cuda::version();
  return sources;
}

Tcp::endpoint Server::websocket() const { return threads_.front()->endpoint(); }
std::string Server::zeromq() const {
  const auto& server = threads_.back()->zeromq();
  if (!server) return "off";
  return "tcp://" + readable(TcpAddress{options_.listen.zeromq->host, server->port()});
}
Tcp::endpoint Server::admin() const { return admin_->endpoint(); }
std::string Server::workers_remote() const {
  if (!remote_server_) return "off";
  return "tcp://" + readable({options_.listen.workers_remote->host, remote_server_->port()});
}

bool Server::run() {
  drain_.start();
  signal_handling_.start();
  hangup_handling_.start();
  clock_watch_.start();
  thread_watching_.start();
  memory_watch_.start();
  admin_->start();
  worker_serving_->start();
  if (remote_serving_) remote_serving_->start();
  for (auto& thread : threads_) thread->run();
  supervisor_.ready("serving");
  run_until_stopped(main_, log_);
  for (auto& thread : threads_) thread->stop();
  return drained_;
}

Task<> Server::handle_signals() {
  if (!signalled_) {
    const auto [failed, first] = co_await signals_.async_wait(no_throw);
    if (failed) co_return;
    signalled_ = true;
    begin_drain(options_.limits);
    log_.info("stopping", {{"linger", readable(options_.limits.linger)},
                           {"notice", readable(options_.limits.notice)},
                           {"drain", readable(options_.limits.drain)},
                           {"note", "open streams are ended; a second signal stops at once"}});
  }
  const auto [failed_again, second] = co_await signals_.async_wait(no_throw);
  if (!failed_again) cut_off("a second signal");
}

void Server::apply_pressure(Overload action, std::uint64_t spare) {
  admission_.gate.memory_short.store(action != Overload::none, std::memory_order_relaxed);
  const Allowance allowed = allowance(spare, admission_.connections.taken(), bare_stream_bytes(),
                                      options_.limits.message);
  admission_.streams.store(allowed.streams, std::memory_order_relaxed);
  if (recording_) recording_->shed(action >= Overload::shed_recording);
  const auto fullest = std::ranges::max_element(
      threads_, {}, [](const auto& thread) { return thread->largest_stream_bytes(); });
  const Time now = Clock::now();
  const bool evicts_one = action == Overload::reset_largest &&
                          (*fullest)->largest_stream_bytes() > 0 &&
                          now - last_eviction_ >= eviction_period;
  if (evicts_one) last_eviction_ = now;
  for (auto& thread : threads_)
    thread->apply_pressure(action, allowed.bytes / threads_.size(),
                           evicts_one && thread == *fullest);
}

HttpAnswer Server::answer(const HttpQuery& query) {
  if (query.path() == "/metrics") return metrics();
  if (query.path() == "/livez") return alive_page(not_alive_reasons());
  if (query.path() == "/readyz") return ready_page(readiness(), query.target);
  if (query.path() == "/status") return status_page(readiness(), draining_);
  if (query.path() == "/streams") return lists_->streams(query.target, Clock::now());
  if (query.path() == "/workers") return lists_->workers(Clock::now());
  if (query.path() == "/log") return log_page(recent_log_);
  if (query.path() == "/history") return {.body = history_.json()};
  if (auto file = find_file(live_page(), query)) return std::move(*file);
  return missing_page();
}

// The exporter caches its text. A change of readiness clears it, so that the next scrape shows it.
HttpAnswer Server::metrics() {
  const bool ready = readiness().reasons().empty();
  if (ready != (stats_.ready.value() == 1)) exporter_->forget();
  stats_.ready.set(ready);
  HttpAnswer answer{.type = std::string(Exporter::content_type),
                    .body = exporter_->text(Clock::now())};
  const std::chrono::duration<double> collected = exporter_->collected().time_since_epoch();
  answer.fields.emplace_back("Millrace-Collected", std::to_string(collected.count()));
  return answer;
}

}  // namespace millrace
