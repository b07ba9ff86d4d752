// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "monitoring/service_stats.h"
#include "recording/writer/stats.h"
#include "streams/stats/stats.h"
#include "training/serving/stats.h"
#include "transport/net/stats.h"
#include "workers/lanes/stats.h"

namespace millrace {

// The counters of one part of the service, one object per writing thread. A reader adds them up.
// The writing threads own the objects, which must outlive all readers.
template <class Stats>
using Shards = std::vector<const Stats*>;

struct PipelineSource {
  std::string name;
  double rate = 1;  // frames per second
  Shards<StreamStats> streams;
  Shards<LaneStats> lanes;
};

// A device of the process. LaneStats::copies has its copies, at the device's index in
// Sources::devices.
struct DeviceSource {
  std::string name;
  Shards<DeviceStats> stats;
};

// All counters that the exporter reads. Fixed when the service starts.
struct Sources {
  Shards<ServiceStats> service;
  Shards<ThreadStats> threads;
  Shards<LogStats> log = {};
  Shards<TransportStats> websocket;
  Shards<TransportStats> zmq;
  Shards<ZeromqStats> zmq_sockets;
  Shards<WorkerServerStats> worker_servers = {};
  std::vector<PipelineSource> pipelines;
  std::vector<DeviceSource> devices = {};
  Shards<recording::RecordingStats> recorder = {};  // empty: nothing is recorded
  Shards<recording::TapStats> taps = {};
  Shards<training::TrainingStats> training = {};  // a server of batches; has nothing of the above
  std::string cuda = "none";                      // the CUDA version of this build
};

}  // namespace millrace
