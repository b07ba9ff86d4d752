// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "service/config/options.h"
#include "transport/net/net.h"
#include "workers/hub/hub.h"
#include "workers/lanes/stats.h"

namespace millrace {

// What a pipeline has to say. Called on its home thread.
struct PipelineCalls {
  WorkerLog log;
  // A device of these, by its place, has failed. Perhaps more than once.
  std::function<void(std::size_t device, const DeviceLost&)> device_lost = [](auto, const auto&) {};
};

// A pipeline as the service runs it: what it was configured to, and its lanes on their home
// thread. Immutable but for the hub, which says what of it is thread-safe.
class Pipeline {
 public:
  // `home` and `supply` outlive it. `streams` are those that the process may have.
  Pipeline(const PipelineOptions& options, net::io_context& home, SlabSupply supply,
           std::uint64_t streams, PipelineCalls calls);

  const PipelineOptions& options() const { return options_; }
  const std::string& name() const { return options_.name; }
  net::io_context& home() const { return home_; }
  Hub& hub() { return hub_; }
  const LaneStats& stats() const { return stats_; }

 private:
  const PipelineOptions options_;
  net::io_context& home_;
  LaneStats stats_;
  Hub hub_;
};

}  // namespace millrace
