// SPDX-License-Identifier: Apache-2.0
#include "bench/batch_source.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/worker_protocol.h"
#include "tests/support/temporary_directory.h"
#include "transport/net/spawn.h"
#include "workers/hub/hub.h"
#include "workers/hub/server.h"
#include "workers/library/worker.h"

namespace millrace::bench {

namespace {

using namespace std::chrono_literals;

HubSettings settings(Duration max_wait) {
  constexpr auto rows = BatchSource::rows;
  HubSettings settings;
  settings.pipeline = "default";
  settings.rule = {.batch = {.slots = rows,
                             .rows = rows,
                             .max_wait = max_wait,
                             .width_buckets = {BatchSource::width}},
                   .worker_wait = 1h,
                   .bye_wait = 1h,
                   .timeouts = {.silence = 1h, .answer = 1h, .first_answer = 1h}};
  settings.welcome = {
      .frames = {},
      .shape = {.format = {}, .slots = rows, .rows = rows, .width = BatchSource::width},
      .chunk = R"({"size":1600})",
      .width_buckets = {BatchSource::width}};
  settings.streams = rows;
  settings.log = [](const WorkerEvent&) {};
  return settings;
}

}  // namespace

Child::Child(const std::function<void()>& does) : pid_(::fork()) {
  if (pid_ != 0) return;
  try {
    does();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "worker: %s\n", error.what());
  }
  ::_exit(0);
}

Child::~Child() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void take_batches(const std::string& url) {
  Worker worker(url);
  while (auto batch = worker.next()) {
    const std::string taken = std::to_string(to_wire(batch->taken()));
    worker.done(*batch, std::vector<Answer>(batch->framed().size(), {Answer::Kind::text, taken}));
  }
}

class BatchSource::Service {
 public:
  Service(Duration pause, Duration max_wait)
      : pause_(pause),
        max_wait_(max_wait),
        batch_rows_(max_wait > Duration::zero() ? 1 : rows),
        returns_(io_, 1000, [this](std::vector<Returned>& some) { on_returned(some); }),
        hub_(io_, settings(max_wait), {devices_, slab_bytes_, slab_threads_}, stats_),
        local_(io_.get_executor(), directory_ / "workers.sock", server_settings()),
        remote_(io_.get_executor(), {net::ip::address_v4::loopback(), 0}, server_settings(),
                budgets_),
        timer_(io_.get_executor()) {
    spawn(io_.get_executor(), local_.serve());
    spawn(io_.get_executor(), remote_.serve());
    for (std::uint64_t id = 0; id < rows; ++id) {
      (void)hub_.stream_budget().try_take(1);
      hub_.open(
          {.id = StreamId{id}, .name = std::to_string(id), .options = {}, .returns = &returns_});
    }
  }
  ~Service() {
    hub_.stop();
    io_.restart();
    io_.poll();
  }

  std::string local() const { return "unix:" + directory_ / "workers.sock"; }
  std::string remote() const { return "tcp://127.0.0.1:" + std::to_string(remote_.port()); }

  Times run(std::size_t batches) {
    times_ = {};
    wanted_ = batches;
    left_ = batches + warm_up;
    add_rows();
    io_.restart();
    io_.run();
    return times_;
  }

 private:
  static constexpr std::size_t warm_up = 200;

  WorkerServerSettings server_settings() {
    WorkerServerSettings settings;
    settings.find = [this](std::string_view) { return PipelineHost{&hub_, &io_}; };
    settings.log = [](const WorkerEvent&) {};
    return settings;
  }

  void add_rows() {
    waiting_ = batch_rows_;
    ready_ = Clock::now();
    for (std::uint64_t id = 0; id < batch_rows_; ++id) {
      ReadyRow ready;
      ready.row.seq = seq_;
      ready.row.size = width;
      ready.row.flags = seq_ == 0 ? flag::start | flag::reset | flag::segment : 0;
      if (seq_ == 0) ready.row.reason = ResetReason::start;
      ready.window[0] = std::as_bytes(std::span(frames_));
      ready.arrived = ready.ready = ready_;
      hub_.add(StreamId{id}, std::move(ready));
    }
    ++seq_;
  }

  void on_returned(std::vector<Returned>& some) {
    for (const Returned& one : some) {
      const auto* done = std::get_if<RowDone>(&one.what);
      if (!done || --waiting_ > 0) continue;
      if (left_ <= wanted_) {
        const Duration late = done->at.closed - ready_ - max_wait_;
        if (late < Duration::zero()) throw std::logic_error("a batch closed before it was due");
        times_.late.add(late);
        times_.handed.add(from_wire(std::atoll(done->answer.data.c_str())) - done->at.closed);
      }
      if (--left_ == 0) return io_.stop();
      timer_.expires_after(pause_);
      timer_.async_wait([this](boost::system::error_code cancelled) {
        if (!cancelled) add_rows();
      });
    }
  }

  const Duration pause_, max_wait_;
  const std::uint32_t batch_rows_;
  const std::vector<std::int16_t> frames_ = std::vector<std::int16_t>(width, 1);
  const TemporaryDirectory directory_;
  RemoteBudgets budgets_{256 << 20};
  net::io_context io_{1};
  Devices devices_;
  Budget slab_bytes_{std::uint64_t{1} << 30};
  LaneStats stats_;
  ReturnBox returns_;
  Hub hub_;
  SlabThreads slab_threads_{0};
  WorkerServer local_, remote_;
  Timer timer_;
  std::uint64_t seq_ = 0;
  Time ready_{};                       // when the rows of the batch became ready
  std::uint32_t waiting_ = 0;          // rows that are not returned yet
  std::size_t left_ = 0, wanted_ = 0;  // batches: still to run, to measure
  Times times_;
};

BatchSource::BatchSource(Duration pause, Duration max_wait)
    : service_(std::make_unique<Service>(pause, max_wait)) {}
BatchSource::~BatchSource() = default;
std::string BatchSource::local() const { return service_->local(); }
std::string BatchSource::remote() const { return service_->remote(); }
BatchSource::Times BatchSource::run(std::size_t batches) { return service_->run(batches); }

}  // namespace millrace::bench
