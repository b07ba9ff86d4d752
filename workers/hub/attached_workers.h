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

// Content of a pipeline's Welcome.
struct WelcomeSettings {
  FrameType frames;  // as streams hold them; a tensor has the element type of `shape`
  BatchShape shape;
  std::string chunk;                           // the chunk rule as a JSON object
  std::vector<std::uint32_t> width_buckets{};  // as in BatchRule; not empty
  std::vector<std::uint32_t> row_buckets{};    // likewise; may be empty
};

// The share of a worker's slabs in the gauges, in bytes.
struct SlabGauges {
  std::int64_t used = 0, free = 0;  // slabs with copies on a device of the service
  std::int64_t pageable = 0;        // slabs whose pages are not locked
};

// An attached worker.
struct AttachedWorker : AttachedPeer {
  std::shared_ptr<PeerProcess> process;  // null if the worker is on another machine
  std::unique_ptr<WorkerSlabs> slabs;
  std::optional<Time> idle;  // when it last ran out of batches; nullopt while it has one
  bool alone = false;        // it leaves when another worker attaches
  bool leaving = false;      // it takes no new streams
  MovedStreams streams;      // if it leaves: its streams at the last count
  SlabGauges slab_gauges;
  Time attached;
  Histogram compute{buckets::fast};  // from batch taken to batch done
};

// A process that only watches: it receives copies of batches. A slow watcher misses batches.
struct Watcher : AttachedPeer {
  Time last_received;  // when its last message was received
};

// The workers that are attached to a pipeline, by lane, and its watchers: their slabs, and the
// messages to them. Confined to the pipeline's home thread.
class AttachedWorkers {
 public:
  // Returns the name of a stream. Called while a row of the stream is handed over.
  using StreamName = std::function<std::string_view(StreamId)>;

  // `maker` and `stats` must outlive it.
  AttachedWorkers(WelcomeSettings settings, SlabMaker& maker, LaneStats& stats,
                  StreamName stream_name);

  // Adds a worker with its lane and its slabs, and sends Welcome.
  void attach(LaneId lane, NewWorker worker, std::unique_ptr<WorkerSlabs> slabs, Time now);
  // The worker takes no new streams. The numbers of its streams are sent to it at once, and at each
  // heartbeat if they have changed.
  void leave(LaneId lane, const MovedStreams& streams);

  void add_watcher(WorkerConnection& link, const std::string& name, Time now);
  void remove_watcher(const WorkerConnection& link);
  // The watcher with this connection; null without one.
  Watcher* find_watcher(const WorkerConnection& link);
  // The watcher whose last message is the oldest; null without watchers.
  Watcher* longest_silent_watcher();
  // As Lanes::extend_deadlines().
  void extend_watcher_deadlines(Duration late, Time now);

  // Applies a report to the slabs that it names. Returns the lane that has a free slab because of
  // it; nullopt without one. Ignores DeviceLost.
  std::optional<LaneId> on_slab_report(const SlabReport& report);
  // The worker cannot open the slabs on its device: it copies from the slabs on the host from now
  // on. Returns false if it does so already, or computes on the host.
  bool leave_copies_to_worker(LaneId lane, const std::string& why);
  // Sends a batch to its worker, and copies of it to the watchers that are not too far behind.
  void hand_over(AttachedWorker& worker, const worker_protocol::HandedBatch& batch);
  // Notifies the worker of a lane, if there is one, that a stream has room again; without
  // bytes: that the stream is not there any more.
  void give_room(LaneId lane, const worker_protocol::Room& room);
  // Updates the worker's share in the gauges of slabs.
  void update_slab_gauges(AttachedWorker& worker) {
    update_slab_gauges(worker, gauges_of(*worker.slabs));
  }

  // Removes a lost worker, but does not end its connection. Its slabs count in the budget until its
  // process has ended.
  void remove(LaneId lane, std::string_view why, Time now);
  // Sends Bye to a worker, ends its connection and removes it; disconnect_all() does so for all
  // workers and watchers.
  void disconnect(LaneId lane);
  void disconnect_all();

  // Sends Heartbeat to each worker and watcher, or Company if that has changed.
  void send_heartbeats(const Lanes& lanes);

  AttachedWorker* find(LaneId lane);
  // The lane of the worker with this connection.
  std::optional<LaneId> lane_of(const WorkerConnection& link) const;
  const std::map<LaneId, AttachedWorker>& all() const { return workers_; }
  // The Welcome of each worker, without its slabs. Thread-safe.
  worker_protocol::Welcome welcome() const;
  std::vector<WorkerStatus> status(const Lanes& lanes, Time now) const;
  bool empty() const { return workers_.empty() && watchers_.empty(); }

 private:
  const RowFormat& format() const { return settings_.shape.format; }
  using Workers = std::map<LaneId, AttachedWorker>;
  Workers::node_type extract(LaneId lane);
  void free(AttachedWorker& worker, bool after_process_end);
  static SlabGauges gauges_of(const WorkerSlabs& slabs);
  void update_slab_gauges(AttachedWorker& worker, const SlabGauges& now);
  std::size_t tensor_bytes(const worker_protocol::HandedBatch& batch) const;
  Bytes tensor_of(const worker_protocol::HandedBatch& batch, Bytes slab, const RowFormat& as);
  bool any_watcher_accepts(std::size_t tensor) const;
  void copy_to_watchers(const worker_protocol::HandedBatch& batch, Bytes tensor);
  using Send = void (AttachedPeer::*)(const worker_protocol::Company&);
  void send_company(Send send);

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
  std::vector<RowWindow> windows_;  // windows of the rows that tensor_of() expands
  std::vector<std::byte> expanded_;
};

}  // namespace millrace
