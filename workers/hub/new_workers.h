// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schemas/worker_messages.h"
#include "workers/hub/connection.h"
#include "workers/hub/peer_process.h"
#include "workers/hub/slab_maker.h"

namespace millrace {

// The reason why a worker is refused that has closed its connection before Welcome.
inline constexpr char disconnected_early[] = "the worker disconnected before Welcome was sent";

// A worker that has sent Hello, while its slabs are made.
struct NewWorker {
  WorkerConnection* link = nullptr;
  std::string name;
  std::uint32_t credits = 0;
  bool alone = false;
  std::shared_ptr<PeerProcess> process;          // null if the worker is on another machine
  std::shared_ptr<std::atomic<bool>> cancelled;  // shared with its SlabOrder
};

// The workers of a pipeline between Hello and Welcome. Confined to the pipeline's home thread.
class NewWorkers {
 public:
  // `maker` must outlive it.
  explicit NewWorkers(SlabMaker& maker) : maker_(maker) {}

  // Adds a worker and orders its slabs. Returns the refusal if that fails; the worker is not added
  // then.
  std::optional<worker_protocol::Refused> add(WorkerConnection& link,
                                              const worker_protocol::Hello& hello);
  // Removes and returns the worker of these slabs; nullopt if it is gone. Counts a failure of the
  // device.
  std::optional<NewWorker> take(const MadeSlabs& made);
  // The refusal of a worker that cannot use the slabs that were made for it; nullopt if it can.
  std::optional<worker_protocol::Refused> refusal(const NewWorker& worker,
                                                  const MadeSlabs& made) const;
  // The worker with this connection; null without one.
  const NewWorker* find(const WorkerConnection& link) const;
  // Removes the worker with this connection, if there is one, and cancels its order.
  void remove(const WorkerConnection& link);
  // Refuses and removes all workers.
  void refuse_all(const worker_protocol::Refused& why);

  // Must be called for each report: slabs that are being made may be on a device that is lost.
  void on_slab_report(const SlabReport& report);

 private:
  SlabMaker& maker_;
  std::uint64_t next_order_ = 1;
  std::map<std::uint64_t, NewWorker> workers_;  // by order
  PeerProcesses processes_;
  std::vector<SlabReport> lost_devices_;  // reports of devices that were lost while workers waited
};

}  // namespace millrace
