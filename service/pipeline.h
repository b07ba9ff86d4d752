// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/budget.h"
#include "service/options.h"
#include "transport/net.h"
#include "workers/hub.h"
#include "workers/stats.h"

namespace millrace {

// A pipeline as the service runs it: what it was configured to, and its lanes on their home
// thread. Immutable but for the hub, which says what of it is thread-safe.
class Pipeline {
 public:
  // `home` and `slab_bytes` outlive it. `streams` are those that the process may have; `log` is
  // called on the home thread.
  Pipeline(const PipelineOptions& options, net::io_context& home, Budget& slab_bytes,
           std::uint64_t streams, WorkerLog log);

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
