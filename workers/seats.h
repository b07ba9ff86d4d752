// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/frame_type.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "gpu/row_expansion.h"
#include "schemas/worker_codec.h"
#include "schemas/worker_messages.h"
#include "workers/feeds.h"
#include "workers/lost_slabs.h"
#include "workers/peer_process.h"
#include "workers/stats.h"
#include "workers/worker_connection.h"

namespace millrace {

// What a pipeline's workers are told when they attach.
struct SeatSettings {
  FrameType frames;  // as streams hold them
  FeedShape shape;
  std::string chunk;  // the chunk rule as a JSON object
};

// An attached worker.
struct Seat {
  WorkerConnection* link = nullptr;
  std::string name;
  std::unique_ptr<PeerProcess> process;  // null: on another machine
  Feed feed;
  std::optional<Time> idle;          // since when it has no batch
  std::optional<Time> without_slab;  // since when a batch waits for one
  bool alone = false;                // it leaves when there is another
};

// One that only watches.
struct Watcher {
  WorkerConnection* link = nullptr;
  std::string name;
  Time heard;
};

// The workers attached to a pipeline, by lane, and those who only watch: their slabs, and all that
// is sent to them. Confined to the pipeline's home thread.
class Seats {
 public:
  // The name of a stream whose row is being handed over.
  using StreamName = std::function<std::string_view(StreamId)>;

  struct Calls {
    StreamName stream_name;
    Feeds::Report report;  // to be given to take() on the home thread
  };

  // `stats` outlive the seats.
  Seats(SeatSettings settings, SlabSupply supply, LaneStats& stats, Calls calls);

  // Makes the slabs of a worker that said hello; a refusal is for refuse(). `no_device` as in
  // Hub::hello.
  [[nodiscard]] Result<Seat, worker_protocol::Refused> prepare(
      WorkerConnection& link, const worker_protocol::Hello& hello,
      const std::optional<DeviceFailure>& no_device, Time now);
  // Gives it its lane, and says Welcome.
  void seat(LaneId lane, Seat seat);
  void watch(WorkerConnection& link, const worker_protocol::Hello& hello, Time now);
  // Tells it why, and ends its connection.
  void refuse(WorkerConnection& link, const worker_protocol::Refused& why);

  // Whether a slab is free that was not.
  bool take(const FeedReport& report);
  // The worker cannot open the slabs on its device, and copies from those of the host. False where
  // there are none that it could.
  bool leave_copies_to_worker(Seat& seat, const std::string& why) {
    return feeds_.leave_copies_to_worker(seat.feed, why);
  }
  // Sets the gauges of slabs.
  void show_slabs() const;

  // The worker is lost; whether its connection is ended is up to the caller. Its slabs count until
  // its process is gone.
  void remove(LaneId lane);
  void remove_watcher(const WorkerConnection& link);
  // Says Bye to the worker and ends its connection.
  void dismiss(LaneId lane);
  void dismiss_watcher(WorkerConnection& link);
  void dismiss_all();

  // To everybody who has read what was sent before.
  void beat();

  Seat* find(LaneId lane);
  // By its connection.
  std::optional<LaneId> lane_of(const WorkerConnection& link) const;
  std::map<LaneId, Seat>& all() { return seats_; }
  // Of a worker or a watcher; empty for any other connection.
  std::string_view name_of(const WorkerConnection& link);
  Watcher* find_watcher(const WorkerConnection& link);
  // Of which was heard before any other's; null without any.
  Watcher* quietest_watcher();
  // As Lanes::shift().
  void shift_watchers(Duration late, Time now);
  bool empty() const { return seats_.empty() && watchers_.empty(); }

 private:
  const RowFormat& format() const { return settings_.shape.format; }
  Seat unseat(LaneId lane);
  worker_protocol::Welcome welcome() const;
  Bytes tensor_of(const worker_protocol::HandedBatch& batch, Bytes slab, const RowFormat& as);
  void hand(Seat& seat, const worker_protocol::HandedBatch& batch, Bytes slab);
  void copy_to_watchers(const worker_protocol::HandedBatch& batch, Bytes tensor);
  void announce_company();

  const SeatSettings settings_;
  LaneStats& stats_;
  const StreamName stream_name_;
  Feeds feeds_;
  std::map<LaneId, Seat> seats_;
  LostSlabs lost_;
  std::vector<Watcher> watchers_;
  worker_protocol::Encoder encoder_;
  std::vector<RowWindow> windows_;  // of rows that are expanded for a watcher
  std::vector<std::byte> expanded_;
};

}  // namespace millrace
