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

// Functions that a pipeline calls on its home thread.
struct PipelineCallbacks {
  WorkerLog log;
  // A device has failed: its index in Devices::usable(). May be called again for the same device.
  std::function<void(std::size_t device, const DeviceLost&)> device_lost = [](auto, const auto&) {};
};

// The settings of a pipeline's hub. `streams` is the limit on streams of the process.
HubSettings hub_settings(const PipelineOptions& options, std::uint64_t streams,
                         PipelineCallbacks callbacks);

// A running pipeline: its options, and its lanes on their home thread. Immutable after
// construction, except the hub; see Hub for the members that are thread-safe.
class Pipeline {
 public:
  // `home` and `supply` must outlive it. `streams` is the limit on streams of the process.
  Pipeline(const PipelineOptions& options, net::io_context& home, SlabSupply supply,
           std::uint64_t streams, PipelineCallbacks callbacks);

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
