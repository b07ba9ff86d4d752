// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "monitoring/service_stats.h"
#include "streams/stats.h"
#include "transport/net/stats.h"
#include "workers/lanes/stats.h"

namespace millrace {

// The counters of one thing, spread over the threads that write them; read as their sum. They
// belong to who counts, and outlive whoever reads them here.
template <class Stats>
using Shards = std::vector<const Stats*>;

struct PipelineSource {
  std::string name;
  double rate = 1;  // frames per second
  Shards<StreamStats> streams;
  Shards<LaneStats> lanes;
};

// A device of the process. Its copies are in LaneStats::copies, at its place among these.
struct DeviceSource {
  std::string name;
  Shards<DeviceStats> stats;
};

// Everything that the exporter reads. Fixed when the service starts.
struct Sources {
  Shards<ServiceStats> service;
  Shards<ThreadStats> threads;
  Shards<LogStats> log = {};
  Shards<DoorStats> websocket;
  Shards<DoorStats> zmq;
  Shards<ZeromqStats> zmq_sockets;
  Shards<WorkerServerStats> worker_servers = {};
  std::vector<PipelineSource> pipelines;
  std::vector<DeviceSource> devices = {};
  std::string cuda = "none";  // the version that this is built with
};

}  // namespace millrace
