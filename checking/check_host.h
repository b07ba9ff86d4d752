// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "batcher/batch.h"
#include "schemas/worker_messages.h"
#include "transport/net/net.h"
#include "workers/hub/attached_workers.h"
#include "workers/hub/hub.h"
#include "workers/hub/mailbox.h"
#include "workers/hub/new_workers.h"
#include "workers/hub/slab_maker.h"
#include "workers/hub/worker_host.h"

namespace millrace::checking {

// The service's end of the worker protocol in a check: two workers, 0 and 1, and the batches that
// the caller wants. As in a service, each worker has its credits, slabs and time limits.
//
// The first error ends the check: failure() then says what a worker did. Confined to the thread
// that runs `home`.
class CheckHost final : public WorkerHost {
 public:
  static constexpr std::uint32_t workers = 2;

  // `home`, `supply` and `stats` must outlive it.
  CheckHost(net::io_context& home, const HubSettings& settings, SlabSupply supply,
            LaneStats& stats);

  // The next worker that attaches is this one. Requires: no worker has this number.
  void expect(std::uint32_t worker) { expected_ = worker; }
  bool attached(std::uint32_t worker) const { return held(worker).lane.has_value(); }
  // The worker is to end: its connection may end now. If it sends Bye, it is answered.
  void release(std::uint32_t worker) { held_[worker].released = true; }
  // Ends the connection of the worker, if it has one.
  void disconnect(std::uint32_t worker);

  // True if the worker has a credit and a slab. Requires: attached(worker).
  bool has_room(std::uint32_t worker);
  // True if a service would hand over no row of the stream, because of its pending rows.
  bool must_wait(std::uint32_t worker, StreamId stream) const;
  bool holds_batch() const;  // any worker
  // The streams that have a pending row at a worker.
  std::set<StreamId> pending_streams() const;
  // Hands a batch over, and returns its id. Its last `padding` rows with frames become padding rows
  // with these values. Requires: has_room(worker).
  BatchId hand_over(std::uint32_t worker, Batch batch, std::uint32_t padding,
                    std::vector<worker_protocol::OpenedStream> opened);
  // The messages of workers, in order:
  //
  // - Done; the answers are complete, one for each row
  // - LateAnswer, to a row that was pending. As in a service, those to other rows are ignored.
  // - Send
  std::vector<worker_protocol::ToService> take_received() { return std::exchange(received_, {}); }

  // Empty: nothing failed.
  const std::string& failure() const { return failure_; }
  void fail(std::string why);

  void hello(WorkerConnection& link, const worker_protocol::Hello& hello) noexcept override;
  void receive(WorkerConnection& link, worker_protocol::ToService message) noexcept override;
  void lost(WorkerConnection& link, WorkerFailure why,
            LossCause cause = LossCause::worker) noexcept override;
  void protocol_error(WorkerConnection& link, std::string_view what) noexcept override;
  void no_room(WorkerConnection& link, std::string_view what) noexcept override;
  Result<worker_protocol::Welcome, worker_protocol::Refused> description() const override {
    return workers_.welcome();
  }
  const WorkerLog& log() const override { return log_; }
  std::size_t batch_bytes() const override;

  // Ends all connections.
  void stop() noexcept;

 private:
  using RowId = std::pair<StreamId, std::uint64_t>;  // with the row's number in its stream
  struct HandedOver {
    BatchId id{};
    std::vector<RowId> framed{}, marks{};
  };
  struct Held {
    std::optional<LaneId> lane;
    std::uint32_t credits = 0;
    std::deque<HandedOver> batches{};
    Time last_received{}, waits_since{};  // the last one: for the answer to the oldest batch
    std::set<RowId> pending{};            // rows whose answer follows
    bool answered = false;                // any batch
    bool released = false;
  };

  const Held& held(std::uint32_t worker) const { return held_[worker]; }
  std::optional<std::uint32_t> worker_of(const WorkerConnection& link) const;
  std::string text_of(std::uint32_t worker) const;
  void on_slab_messages(std::vector<SlabMessage>& messages);
  void on_slabs_made(MadeSlabs& made);
  void receive_done(std::uint32_t worker, worker_protocol::Done done);
  void check_times(Time now, Duration late);
  void wait();

  const HubSettings settings_;
  const WorkerLog log_;
  Mailbox<SlabMessage> slab_messages_;
  SlabMaker maker_;
  NewWorkers new_workers_{maker_};
  AttachedWorkers workers_;
  const Lanes no_lanes_{settings_.rule};  // no worker leaves with streams
  Timer timer_;
  Time next_check_{}, next_heartbeat_{};
  std::optional<std::uint32_t> expected_;
  std::array<Held, workers> held_;
  std::uint64_t next_lane_ = 1, next_batch_ = 1;
  std::vector<worker_protocol::ToService> received_;
  std::string failure_;
  bool stopped_ = false;
};

}  // namespace millrace::checking
