// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/frame_type.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/stats.h"
#include "base/time.h"
#include "gpu/host/row_expansion.h"
#include "schemas/worker_codec.h"
#include "schemas/worker_messages.h"
#include "workers/hub/connection.h"
#include "workers/hub/lost_slabs.h"
#include "workers/hub/peer_process.h"
#include "workers/hub/slab_maker.h"
#include "workers/lanes/stats.h"

namespace millrace {

// What a pipeline's workers are told when they attach.
struct WelcomeSettings {
  FrameType frames;  // as streams hold them
  BatchShape shape;
  std::string chunk;  // the chunk rule as a JSON object
};

// What a worker's slabs add to the gauges, in bytes.
struct SlabsShown {
  std::int64_t used = 0, free = 0;  // of those on a device of the service
  std::int64_t pageable = 0;
};

// An attached worker.
struct AttachedWorker {
  WorkerConnection* link = nullptr;
  std::string name;
  std::shared_ptr<PeerProcess> process;  // null: on another machine
  std::unique_ptr<WorkerSlabs> slabs;
  std::optional<Time> idle;           // since when it has no batch
  bool alone = false;                 // it leaves when there is another
  bool leaving = false;               // it takes no new streams
  std::optional<std::uint32_t> told;  // how many others take batches
  SlabsShown shown;
  Time attached;
  Histogram compute{buckets::fast};  // batch taken to batch done
};

// A worker that said hello and whose slabs are being made.
struct NewWorker {
  WorkerConnection* link = nullptr;
  std::string name;
  std::uint32_t credits = 0;
  bool alone = false;
  std::shared_ptr<PeerProcess> process;
  std::shared_ptr<std::atomic<bool>> cancelled;  // of its SlabOrder
};

// One that only watches.
struct Watcher {
  WorkerConnection* link = nullptr;
  std::string name;
  Time heard;
  std::optional<std::uint32_t> told = {};  // as an AttachedWorker's
};

// The workers attached to a pipeline, by lane, and those who only watch: their slabs, and all that
// is sent to them. Confined to the pipeline's home thread.
class AttachedWorkers {
 public:
  // The name of a stream whose row is being handed over.
  using StreamName = std::function<std::string_view(StreamId)>;

  struct Calls {
    StreamName stream_name;
    SlabMaker::Calls slabs;  // what they give is for take() and arrive() on the home thread
  };

  // `stats` outlives it.
  AttachedWorkers(WelcomeSettings settings, SlabSupply supply, LaneStats& stats, Calls calls);

  // Begins to make the slabs of a worker that said hello. The result goes to arrive(). A refusal is
  // for refuse().
  std::optional<worker_protocol::Refused> prepare(WorkerConnection& link,
                                                  const worker_protocol::Hello& hello);
  // The worker whose slabs these are; nothing if it is gone.
  std::optional<NewWorker> arrive(const MadeSlabs& made);
  // Whether the device of the slabs failed while they were made; null: it did not.
  const DeviceLost* lost_meanwhile(const WorkerSlabs& slabs) const;
  void free(std::unique_ptr<WorkerSlabs> slabs) { maker_.free(std::move(slabs)); }
  // Gives a worker its lane and its slabs, and sends Welcome.
  void attach(LaneId lane, const NewWorker& worker, std::unique_ptr<WorkerSlabs> slabs, Time now);
  // The worker whose slabs are being made; null for any other connection.
  const NewWorker* find_new_worker(const WorkerConnection& link) const;
  void remove_new_worker(const WorkerConnection& link);
  // The worker takes no new streams.
  void leave(LaneId lane);
  void watch(WorkerConnection& link, const worker_protocol::Hello& hello, Time now);
  // Tells it why, and ends its connection.
  void refuse(WorkerConnection& link, const worker_protocol::Refused& why);

  // The lane that has a free slab by it.
  std::optional<LaneId> take(const SlabReport& report);
  // The worker cannot open the slabs on its device, and copies from those of the host. False where
  // there are none that it could.
  bool leave_copies_to_worker(LaneId lane, const std::string& why);
  // Sends a batch to its worker, and copies of it to the watchers that take one.
  void hand(AttachedWorker& worker, const worker_protocol::HandedBatch& batch);
  // Brings the gauges of slabs up to date with the worker's.
  void show_slabs(AttachedWorker& worker) { show_slabs(worker, slabs_of(*worker.slabs)); }

  // The worker is lost; whether its connection is ended is up to the caller. Its slabs count until
  // its process is gone.
  void remove(LaneId lane);
  void remove_watcher(const WorkerConnection& link);
  // Says Bye to a worker and ends its connection.
  void say_bye(WorkerConnection& link);
  // The same for one that has a lane.
  void dismiss(LaneId lane);
  void dismiss_watcher(WorkerConnection& link);
  void dismiss_all();

  // Sends a heartbeat to each worker and watcher that has read what was sent before, or, if it has
  // changed, the number of others.
  void beat();

  AttachedWorker* find(LaneId lane);
  // By its connection.
  std::optional<LaneId> lane_of(const WorkerConnection& link) const;
  const std::map<LaneId, AttachedWorker>& all() const { return workers_; }
  // Of a worker or a watcher; empty for any other connection.
  std::string_view name_of(const WorkerConnection& link);
  Watcher* find_watcher(const WorkerConnection& link);
  // Of which was heard before any other's; null without any.
  Watcher* quietest_watcher();
  // As Lanes::shift().
  void shift_watchers(Duration late, Time now);
  bool empty() const { return workers_.empty() && watchers_.empty(); }

 private:
  const RowFormat& format() const { return settings_.shape.format; }
  using Workers = std::map<LaneId, AttachedWorker>;
  Workers::node_type unseat(LaneId lane);
  static SlabsShown slabs_of(const WorkerSlabs& slabs);
  void show_slabs(AttachedWorker& worker, const SlabsShown& now);
  worker_protocol::Welcome welcome() const;
  std::size_t tensor_bytes(const worker_protocol::HandedBatch& batch) const;
  Bytes tensor_of(const worker_protocol::HandedBatch& batch, Bytes slab, const RowFormat& as);
  bool is_taken_by_watchers(std::size_t tensor) const;
  void copy_to_watchers(const worker_protocol::HandedBatch& batch, Bytes tensor);
  template <class Tell>
  void for_each_company(Tell tell);
  void announce_company();

  const WelcomeSettings settings_;
  LaneStats& stats_;
  const StreamName stream_name_;
  SlabMaker maker_;
  std::uint64_t next_order_ = 1;
  std::map<std::uint64_t, NewWorker> new_workers_;  // by order
  std::vector<SlabReport> lost_meanwhile_;          // devices, while workers arrive
  std::map<LaneId, AttachedWorker> workers_;
  std::unordered_map<const WorkerConnection*, LaneId> by_link_;
  std::unordered_map<std::uint64_t, LaneId> by_slabs_;
  PeerProcesses processes_;
  LostSlabs lost_{maker_};
  std::vector<Watcher> watchers_;
  worker_protocol::Encoder encoder_;
  std::vector<RowWindow> windows_;  // of rows that are expanded for a watcher
  std::vector<std::byte> expanded_;
};

}  // namespace millrace
