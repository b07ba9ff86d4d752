// SPDX-License-Identifier: Apache-2.0
#include "replay/worker_lanes.h"

#include <pthread.h>

#include <future>
#include <thread>
#include <utility>

#include "gpu/cuda/devices.h"
#include "service/pipelines/pipeline.h"
#include "transport/net/endless_task.h"
#include "transport/net/local_path.h"
#include "workers/hub/server.h"

namespace millrace {
namespace {

constexpr std::uint64_t unread_bytes = std::uint64_t{64} << 20;

}  // namespace

std::optional<WorkersAddress> workers_address(const std::string& url) {
  constexpr std::string_view scheme = "tcp://";
  if (const auto path = local_path(url)) return WorkersAddress{.path = *path};
  if (url.starts_with(scheme))
    if (const auto address = parse_tcp(std::string_view(url).substr(scheme.size())))
      return WorkersAddress{.tcp = *address};
  return std::nullopt;
}

struct WorkerLanes::Impl {
  Impl(const ReplayPipeline& replay, const WorkersAddress& address, WorkerLog log)
      : devices(replay.gpu),
        slab_bytes(replay.slab_bytes),
        slab_threads(std::in_place, devices.usable().size()),
        pipeline(replay.options, home, SlabSupply{devices, slab_bytes, *slab_threads},
                 WorkerLanes::most_streams, callbacks(log)) {
    WorkerServerSettings settings{.find = [this](std::string_view name) -> PipelineHost {
                                    if (name != pipeline.name()) return {};
                                    return {&pipeline.hub(), &home};
                                  },
                                  .log = log};
    if (address.tcp)
      server.emplace(home.get_executor(),
                     Tcp::endpoint(net::ip::make_address(address.tcp->host), address.tcp->port),
                     std::move(settings), budgets);
    else
      server.emplace(home.get_executor(), address.path, std::move(settings));
    serving.emplace(home.get_executor(), [this] { return server->serve(); });
    serving->start();
    thread = std::jthread([this] { home.run(); });
    pthread_setname_np(thread.native_handle(), "replay-home");
  }

  ~Impl() {
    std::promise<void> stopped;
    net::post(home, [this, &stopped] {
      pipeline.hub().stop();
      stopped.set_value();
    });
    stopped.get_future().wait();
    home.stop();
    thread.join();
    // Coroutines that still run must end before the objects that they use.
    serving.reset();
    slab_threads.reset();
    home.restart();
    home.poll();
  }

  PipelineCallbacks callbacks(const WorkerLog& log) {
    return {.log = log, .device_lost = [this](std::size_t device, const DeviceLost&) {
              devices.mark_lost(device);
            }};
  }

  net::io_context home{1};
  net::executor_work_guard<Executor> work{home.get_executor()};
  Devices devices;
  Budget slab_bytes;
  std::optional<SlabThreads> slab_threads;
  RemoteBudgets budgets{unread_bytes};
  Pipeline pipeline;
  std::optional<WorkerServer> server;
  std::optional<EndlessTask> serving;
  std::jthread thread;
};

WorkerLanes::WorkerLanes(const ReplayPipeline& pipeline, const WorkersAddress& address,
                         WorkerLog log)
    : impl_(std::make_unique<Impl>(pipeline, address, std::move(log))) {}
WorkerLanes::~WorkerLanes() = default;

Hub& WorkerLanes::hub() { return impl_->pipeline.hub(); }
std::uint64_t WorkerLanes::workers() const {
  return static_cast<std::uint64_t>(impl_->pipeline.stats().workers.value());
}

}  // namespace millrace
