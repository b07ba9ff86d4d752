// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/budget.h"
#include "base/time.h"
#include "checking/check_host.h"
#include "checking/check_report.h"
#include "checking/plan/checked_stream.h"
#include "checking/plan/stage.h"
#include "checking/worker_process.h"
#include "gpu/cuda/devices.h"
#include "service/config/options.h"
#include "transport/net/endless_task.h"
#include "workers/hub/server.h"
#include "workers/lanes/stats.h"

namespace millrace::checking {

struct CheckSettings {
  PipelineOptions pipeline;
  DeviceRule gpu;
  std::uint64_t slab_bytes = 0;
  std::vector<std::string> command;
  Duration attach_limit = std::chrono::minutes(5);  // from the start of the command: models load
  Duration end_limit = std::chrono::seconds(10);    // from SIGTERM
};

// The processes of a check, and the service that they find: starts the command when a batch needs
// it, plays the batches of stages to it, and ends it.
//
// Errors are exceptions (std::runtime_error) with one line that says what the command did. Confined
// to one thread, except stop().
class CheckRun {
 public:
  // Listens in `folder`, a folder of this user alone. `streams` must outlive it.
  CheckRun(CheckSettings settings, std::span<const CheckedStream> streams,
           const std::string& folder);
  ~CheckRun();

  // Plays the batches in order. `progress` is called with the number of batches that were handed
  // over.
  PlayedStage play(const Stage& stage, const std::function<void(std::size_t)>& progress);
  // Ends the workers. Throws if one of them does not end after SIGTERM.
  void end();
  // A call in progress throws. Thread-safe.
  void stop();

 private:
  void start(std::uint32_t worker);
  void end(std::uint32_t worker);
  void settle();
  void end_stream(const PlannedBatch& last, const PlannedRow& row);
  bool must_wait(const PlannedBatch& batch) const;
  void hand_over(const PlannedBatch& planned);
  void collect(PlayedStage& into);
  void take(worker_protocol::LateAnswer& late, PlayedStage& into);
  // Runs until it is true.
  template <class Condition>
  void wait_until(Condition condition);
  void check();
  [[noreturn]] void report_failure();
  bool runs_within(std::uint32_t worker, Duration limit);

  const CheckSettings settings_;
  const std::span<const CheckedStream> streams_;
  const std::string socket_;
  net::io_context home_{1};
  net::executor_work_guard<Executor> work_{home_.get_executor()};
  Devices devices_;
  Budget slab_bytes_;
  LaneStats stats_;
  SlabThreads slab_threads_;
  CheckHost host_;
  std::optional<WorkerServer> server_;
  std::optional<EndlessTask> serving_;
  std::array<std::optional<WorkerProcess>, CheckHost::workers> processes_;
  std::array<bool, CheckHost::workers> attached_{};  // they have been, since their start
  std::map<BatchId, const PlannedBatch*> handed_;    // batches that are not done; null: of
                                                     // end_stream()
  std::set<StreamId> here_;                          // streams that are at a worker
  // The last rows of streams at their workers, with their batches.
  std::vector<std::pair<const PlannedBatch*, PlannedRow>> left_;
  std::unordered_map<StreamId, std::size_t> answers_of_;  // index in the answers of the stage
};

}  // namespace millrace::checking
