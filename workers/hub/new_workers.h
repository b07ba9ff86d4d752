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

// Why a worker that hung up early is refused.
inline constexpr char hung_up[] = "it hung up before it was welcomed";

// A worker that said hello and whose slabs are being made.
struct NewWorker {
  WorkerConnection* link = nullptr;
  std::string name;
  std::uint32_t credits = 0;
  bool alone = false;
  std::shared_ptr<PeerProcess> process;
  std::shared_ptr<std::atomic<bool>> cancelled;  // of its SlabOrder
};

// The new workers of a pipeline. Confined to its home thread.
class NewWorkers {
 public:
  // `maker` outlives it.
  explicit NewWorkers(SlabMaker& maker) : maker_(maker) {}

  // Orders the slabs of a worker. If it returns a refusal, the worker was not added.
  std::optional<worker_protocol::Refused> add(WorkerConnection& link,
                                              const worker_protocol::Hello& hello);
  // Takes out the worker whose slabs these are; nullopt if it is gone.
  std::optional<NewWorker> take(const MadeSlabs& made);
  // Why a worker cannot use the slabs that were made for it; nullopt: it can.
  std::optional<worker_protocol::Refused> refusal(const NewWorker& worker,
                                                  const MadeSlabs& made) const;
  // Null for any other connection.
  const NewWorker* find(const WorkerConnection& link) const;
  void remove(const WorkerConnection& link);
  void refuse_all(const worker_protocol::Refused& why);

  // Remembers the loss of a device while slabs are made.
  void note(const SlabReport& report);

 private:
  SlabMaker& maker_;
  std::uint64_t next_order_ = 1;
  std::map<std::uint64_t, NewWorker> workers_;  // by order
  PeerProcesses processes_;
  std::vector<SlabReport> lost_;  // devices, while workers wait
};

}  // namespace millrace
