// SPDX-License-Identifier: Apache-2.0
#include "load/load_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

#include "base/enum_names.h"
#include "load/checking_worker.h"
#include "load/clients/client_thread.h"
#include "load/clients/websocket_load_transport.h"
#include "load/clients/zeromq_load_transport.h"
#include "load/protocols/deepgram.h"
#include "load/protocols/millrace_v1.h"
#include "load/protocols/openai.h"

namespace millrace::load {

namespace {

using namespace std::chrono_literals;
using OwnWorker = LoadTarget::OwnWorker;

constexpr Duration time_to_first_packet = 100ms;
std::string random_name() {
  constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::string name = "b";
  for (int i = 0; i < 8; ++i) name += digits[random() % digits.size()];
  return name;
}

SentAudio sent_to(const LoadTarget& target, const FrameType& type) {
  SentAudio sent = plain(type);
  if (target.format) sent.format = *target.format;
  if (target.rate && !sent.is_opus()) sent.rate = *target.rate;
  return sent;
}

// The other protocols. Their URL may have a path.
std::unique_ptr<LoadTransport> foreign_transport_to(const LoadTarget& target, const FrameType& type,
                                                    const SentAudio& sent, std::uint32_t clients) {
  if (type.features || type.values != 1)
    throw std::runtime_error("--speak: only millrace has features and several channels");
  const auto host = target.url.find("://");
  const auto path = host == target.url.npos ? host : target.url.find_first_of("/?", host + 3);
  const auto service = parse_service_url(target.url.substr(0, path));
  if (!service)
    throw std::runtime_error("--url: must be ws:// or wss:// with a host for --speak " +
                             std::string(name_of(target.spoken)));
  ForeignStreams streams{.target = path == target.url.npos ? "" : target.url.substr(path),
                         .model = target.model,
                         .format = sent.format,
                         .rate = sent.rate,
                         .named = target.worker != OwnWorker::none};
  ServiceAccess access = target.access;
  std::unique_ptr<ClientProtocol> protocol;
  if (target.spoken == Spoken::openai) {
    protocol = std::make_unique<OpenAiClients>(std::move(streams));
  } else {
    protocol = std::make_unique<DeepgramClients>(std::move(streams));
    if (const std::string token = std::exchange(access.token, {}); !token.empty())
      access.headers.emplace_back("Authorization", "Token " + token);
  }
  return std::make_unique<WebSocketLoadTransport>(CheckedAccess(*service, access),
                                                  std::move(protocol), clients);
}

std::unique_ptr<LoadTransport> transport_to(const LoadTarget& target, const FrameType& type,
                                            const SentAudio& sent, std::uint32_t clients) {
  if (target.spoken != Spoken::millrace) return foreign_transport_to(target, type, sent, clients);
  StreamRequest request{.pipeline = target.pipeline, .options = target.options};
  request.resume = target.resume;
  (type.features ? request.dim : request.channels) = type.values;
  request.format = name_of(sent.format);
  if (!sent.is_opus()) request.rate = sent.rate;
  if (const auto service = parse_service_url(target.url))
    return std::make_unique<WebSocketLoadTransport>(
        CheckedAccess(*service, target.access), std::make_unique<MillraceV1>(std::move(request)),
        clients);
  if (const auto service = parse_tcp_url(target.url))
    return std::make_unique<ZeromqLoadTransport>(*service, tcp_token(target.access),
                                                 std::move(request), clients,
                                                 size_of(sent.format) * type.values);
  throw std::runtime_error(wrong_url(target.url));
}

std::uint64_t packets_to_commit(const LoadPlan& plan) {
  if (!plan.commit) return 0;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(*plan.commit / plan.packet));
}

std::uint32_t threads_of(const Schedule& schedule, const LoadTarget& target) {
  return std::min<std::uint32_t>(target.threads, schedule.plan().streams);
}

class Run {
 public:
  Run(Schedule& schedule, const LoadTarget& target)
      : schedule_(schedule),
        target_(target),
        worker_(attach(target)),
        type_(worker_ ? worker_->frames() : target.type),
        sent_(sent_to(target, type_)),
        content_(content()),
        run_{.schedule = schedule,
             .content = content_,
             .name = random_name(),
             .answered = target.worker == OwnWorker::answering,
             .transcribed = target.spoken != Spoken::millrace,
             .messages = target.messages,
             .commit = packets_to_commit(schedule.plan())},
        gate_(threads_of(schedule, target)) {}

  // After an exception, the threads that were started end at once.
  ~Run() {
    gate_.abandoned = true;
    Gate::open(gate_.started);
    Gate::open(gate_.measured);
  }

  LoadReport run() {
    LoadReport report{.plan = schedule_.plan(),
                      .answered = run_.answered,
                      .spoken = target_.spoken,
                      .clients = ClientOutcome(schedule_),
                      .worker_device = worker_ ? worker_->device() : "",
                      .before = sample()};
    if (target_.server && !report.before.server)
      throw std::runtime_error("--server-pid: there is no process " +
                               std::to_string(*target_.server));
    if (worker_) checking_worker_.emplace(std::move(*worker_), run_, gate_.abandoned);
    start_threads();
    gate_.opened.wait();
    report.idle = sample();
    schedule_.start(Clock::now() + time_to_first_packet);
    Gate::open(gate_.started);
    report.counted = sample_windows();
    Gate::open(gate_.measured);
    for (auto& thread : threads_) report.clients.add(thread->outcome());
    if (checking_worker_) report.worker.emplace(checking_worker_->finish());
    return report;
  }

 private:
  static std::optional<Worker> attach(const LoadTarget& target) {
    if (target.worker == OwnWorker::none) return std::nullopt;
    return Worker(
        target.workers,
        {.pipeline = target.pipeline, .name = "bench", .device = target.worker_device, .wait = {}});
  }

  Content content() const {
    if (sent_.is_opus() && (schedule_.plan().packet != 20ms || type_.values > 2))
      throw std::runtime_error("opus: needs --packet 20ms, and a pipeline of one or two channels");
    for (const double rate : {sent_.rate, type_.rate}) {
      const double frames = std::chrono::duration<double>(schedule_.plan().packet).count() * rate;
      if (frames < 1 || std::abs(frames - std::round(frames)) > 1e-6)
        throw std::runtime_error(
            "--packet: must be a whole number of frames of the client and of the pipeline");
    }
    if (target_.content.empty()) return Content(schedule_, type_, sent_);
    if (type_.features || type_.values != target_.content_channels)
      throw std::runtime_error("the files must have the same channels as the pipeline");
    return Content(schedule_, type_, target_.content, sent_.rate);
  }

  void start_threads() {
    const std::uint32_t threads = threads_of(schedule_, target_);
    for (std::uint32_t i = 0; i < threads; ++i)
      threads_.push_back(std::make_unique<ClientThread>(
          run_, i, threads, transport_to(target_, type_, sent_, schedule_.plan().streams)));
    for (auto& thread : threads_) thread->start(gate_);
  }

  std::vector<Sample> sample_windows() {
    std::vector<Sample> samples;
    for (Time at = schedule_.counted_from();; at += schedule_.plan().window) {
      threads_.front()->wait_until(std::min(at, schedule_.end()));
      samples.push_back(sample());
      if (at >= schedule_.end()) break;
    }
    return samples;
  }

  Sample sample() {
    Sample now{.clients = cpu_of_us()};
    if (target_.server) now.server = usage_of(*target_.server);
    for (auto& thread : threads_) now.packets += thread->packets();
    if (!checking_worker_) return now;
    now.worker = checking_worker_->cpu();
    now.clients -= now.worker;
    now.rows = checking_worker_->rows();
    return now;
  }

  Schedule& schedule_;
  const LoadTarget& target_;
  std::optional<Worker> worker_;
  const FrameType type_;
  const SentAudio sent_;
  const Content content_;
  const RunFacts run_;
  Gate gate_;
  std::optional<CheckingWorker> checking_worker_;
  std::vector<std::unique_ptr<ClientThread>> threads_;
};

}  // namespace

LoadReport run_load(Schedule& schedule, const LoadTarget& target) {
  Run run(schedule, target);
  return run.run();
}

}  // namespace millrace::load
