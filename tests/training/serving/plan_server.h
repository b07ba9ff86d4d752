// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "chunker/spec.h"
#include "tests/support/memory_catalog.h"
#include "tests/support/patience.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/filling/loading.h"
#include "training/contract/plan_options.h"
#include "training/filling/loader.h"
#include "training/plans/make_plan.h"
#include "training/serving/plan_host.h"
#include "transport/net/spawn.h"
#include "workers/hub/server.h"
#include "workers/library/worker.h"

namespace millrace::test {

// Twelve streams of 7 to 40 frames s16, on four slots, in chunks of four frames.
struct Twelve {
  Twelve() {
    for (std::uint64_t i = 0; i < 12; ++i) catalog->add_numbered(7 + 3 * i);
    options.chunk.emplace();
    options.chunk->spec = {.size = 4};
    options.slots = 4;
    options.seed = 3;
  }

  training::ServedPlan served() const {
    return {.catalog = catalog,
            .options = options,
            .epochs = epochs,
            .format = {.dtype = dtype},
            .threads = 1,
            .skip_failed = skip_failed};
  }

  // The batches of a rank in this process.
  std::vector<LoadedBatch> epoch(training::Rank rank = {}, std::uint64_t number = 0) const {
    std::shared_ptr<const training::Plan> plan(
        std::move(*training::make_plan(*catalog, options, rank)));
    training::Loader loader(catalog, plan, {.rank = rank, .dtype = dtype});
    loader.seek({number, 0});
    return read_epoch(loader);
  }

  std::shared_ptr<MemoryCatalog> catalog = std::make_shared<MemoryCatalog>(FrameType{});
  training::PlanOptions options;
  std::optional<std::uint64_t> epochs;
  Element dtype = Element::f32;
  bool skip_failed = false;
};

// A stream with `count` flushes after its frame 8.
inline MemoryStream with_flushes(std::uint64_t count) {
  MemoryStream stream{.frames = std::vector<std::byte>(40)};
  for (std::uint64_t i = 0; i < count; ++i)
    stream.events.push_back({.event = {.kind = Event::Kind::flush, .mark = i}, .frame = 8});
  return stream;
}

// A server of batches with its thread, on a Unix socket and over TCP.
class PlanServer {
 public:
  explicit PlanServer(training::ServedPlan served, std::uint64_t bytes = std::uint64_t{1} << 30)
      : bytes_(bytes),
        host(home_,
             {.served = std::move(served), .log = [](const WorkerEvent&) {}, .heartbeats = {}},
             bytes_, threads_, stats),
        local_(home_.get_executor(), path(), settings()),
        tcp_(home_.get_executor(), {net::ip::address_v4::loopback(), 0}, settings(), budgets_) {
    spawn(home_.get_executor(), local_.serve());
    spawn(home_.get_executor(), tcp_.serve());
    thread_ = std::jthread([this] { home_.run(); });
  }
  ~PlanServer() {
    home_.stop();
    thread_.join();
    host.stop();
  }

  std::string path() const { return directory_ / "trainers.sock"; }
  std::string url() const { return "unix:" + path(); }
  std::string tcp_url() const { return "tcp://127.0.0.1:" + std::to_string(tcp_.port()); }

  void stop() {
    net::post(home_, [this] { host.stop(); });
  }

 private:
  WorkerServerSettings settings() {
    WorkerServerSettings settings;
    settings.find = [this](std::string_view) { return PipelineHost{&host, &home_}; };
    settings.log = [](const WorkerEvent&) {};
    return settings;
  }

  TemporaryDirectory directory_;
  Budget bytes_;
  RemoteBudgets budgets_{std::uint64_t{1} << 20};
  net::io_context home_{1};

 public:
  training::TrainingStats stats;
  training::PlanHost host;

 private:
  SlabThreads threads_{training::plan_host_threads};
  WorkerServer local_, tcp_;
  std::jthread thread_;
};

inline Worker attach(const std::string& url, const worker_protocol::TrainerHello& trainer = {},
                     std::uint32_t credits = 3) {
  return Worker(url, {.name = "trainer", .credits = credits, .trainer = trainer});
}

// The next `count` batches, or fewer if the server ends them.
inline std::vector<LoadedBatch> take(Worker& trainer, std::size_t count) {
  std::vector<LoadedBatch> batches;
  while (batches.size() < count) {
    auto batch = trainer.next_until(soon());
    if (!batch) break;
    batches.push_back(copy_of(*batch));
    trainer.done(*batch);
  }
  return batches;
}

// The error that the trainer gets.
template <class Action>
WorkerError error_of(Action action) {
  try {
    action();
  } catch (const WorkerError& error) {
    return error;
  }
  FAIL("no error");
  throw;
}
template <class Action>
std::string error_code(Action action) {
  return error_of(action).code();
}

}  // namespace millrace::test
