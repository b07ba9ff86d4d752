// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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
#include "base/stats.h"
#include "base/time.h"
#include "gpu/host/row_expansion.h"
#include "schemas/worker_codec.h"
#include "schemas/worker_messages.h"
#include "workers/hub/connection.h"
#include "workers/hub/lost_slabs.h"
#include "workers/hub/new_workers.h"
#include "workers/hub/peer_process.h"
#include "workers/hub/slab_maker.h"
#include "workers/lanes/lanes.h"
#include "workers/lanes/stats.h"
#include "workers/lanes/worker_status.h"

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
struct AttachedWorker : AttachedPeer {
  std::shared_ptr<PeerProcess> process;  // null: on another machine
  std::unique_ptr<WorkerSlabs> slabs;
  std::optional<Time> idle;  // since when it has no batch
  bool alone = false;        // it leaves when there is another
  bool leaving = false;      // it takes no new streams
  SlabsShown shown;
  Time attached;
  Histogram compute{buckets::fast};  // batch taken to batch done
};

// A process that only watches: it receives copies of batches, and misses some if it is slow.
struct Watcher : AttachedPeer {
  Time heard;
};

// The workers attached to a pipeline, by lane, and those who only watch: their slabs, and all that
// is sent to them. Confined to the pipeline's home thread.
class AttachedWorkers {
 public:
  // The name of a stream whose row is being handed over.
  using StreamName = std::function<std::string_view(StreamId)>;

  // `maker` and `stats` outlive it.
  AttachedWorkers(WelcomeSettings settings, SlabMaker& maker, LaneStats& stats,
                  StreamName stream_name);

  // Gives a worker its lane and its slabs, and sends Welcome.
  void attach(LaneId lane, NewWorker worker, std::unique_ptr<WorkerSlabs> slabs, Time now);
  // The worker takes no new streams.
  void leave(LaneId lane);

  void add_watcher(WorkerConnection& link, const std::string& name, Time now);
  void remove_watcher(const WorkerConnection& link);
  // By its connection; null for any other.
  Watcher* find_watcher(const WorkerConnection& link);
  // The one that has been silent for longest; null without any.
  Watcher* quietest_watcher();
  // As Lanes::shift().
  void shift_watchers(Duration late, Time now);

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
  void remove(LaneId lane, std::string_view why, Time now);
  // Says Bye to a worker and ends its connection; or to all workers and watchers.
  void dismiss(LaneId lane);
  void dismiss_all();

  // Sends a heartbeat, or the number of others, to each worker and watcher.
  void beat();

  AttachedWorker* find(LaneId lane);
  // By its connection.
  std::optional<LaneId> lane_of(const WorkerConnection& link) const;
  const std::map<LaneId, AttachedWorker>& all() const { return workers_; }
  std::vector<WorkerStatus> status(const Lanes& lanes, Time now) const;
  bool empty() const { return workers_.empty() && watchers_.empty(); }

 private:
  const RowFormat& format() const { return settings_.shape.format; }
  using Workers = std::map<LaneId, AttachedWorker>;
  Workers::node_type take_out(LaneId lane);
  void free(AttachedWorker& worker, bool when_its_process_is_gone);
  static SlabsShown slabs_of(const WorkerSlabs& slabs);
  void show_slabs(AttachedWorker& worker, const SlabsShown& now);
  worker_protocol::Welcome welcome() const;
  std::size_t tensor_bytes(const worker_protocol::HandedBatch& batch) const;
  Bytes tensor_of(const worker_protocol::HandedBatch& batch, Bytes slab, const RowFormat& as);
  bool is_taken_by_watchers(std::size_t tensor) const;
  void copy_to_watchers(const worker_protocol::HandedBatch& batch, Bytes tensor);
  using Send = void (AttachedPeer::*)(std::uint32_t others);
  void send_others(Send send);

  const WelcomeSettings settings_;
  SlabMaker& maker_;
  LaneStats& stats_;
  const StreamName stream_name_;
  Workers workers_;
  std::unordered_map<const WorkerConnection*, LaneId> by_link_;
  std::unordered_map<std::uint64_t, LaneId> by_slabs_;
  LostSlabs lost_slabs_{maker_};
  LostWorkers lost_workers_;
  std::vector<Watcher> watchers_;
  worker_protocol::Encoder encoder_;
  std::vector<RowWindow> windows_;  // of rows that are expanded for a watcher
  std::vector<std::byte> expanded_;
};

}  // namespace millrace
