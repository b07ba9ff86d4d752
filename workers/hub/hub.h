// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/budget.h"
#include "base/ids.h"
#include "base/time.h"
#include "schemas/worker_messages.h"
#include "workers/hub/attached_workers.h"
#include "workers/hub/connection.h"
#include "workers/hub/mailbox.h"
#include "workers/hub/new_workers.h"
#include "workers/hub/slab_maker.h"
#include "workers/hub/stream_returns.h"
#include "workers/hub/worker_host.h"
#include "workers/hub/worker_log.h"
#include "workers/lanes/lanes.h"
#include "workers/lanes/stats.h"
#include "workers/lanes/worker_status.h"

namespace millrace {

// Settings of a pipeline's hub.
struct HubSettings {
  std::string pipeline;
  LanesRule rule;
  WelcomeSettings welcome;
  std::uint64_t streams = 0;          // most live streams of the whole process: bounds the mailbox
  std::size_t longest_row_posts = 0;  // most bytes of messages of clients that a row carries
  std::uint64_t tail_rows = 0;        // most rows that the end of a segment yields: bounds it too
  WorkerLog log;
  // Called on the home thread if a device has failed and this process cannot use it any more. The
  // workers on that device are lost already.
  std::function<void(std::size_t device, const DeviceLost&)> device_lost = [](auto, const auto&) {};
};

// One pipeline's end of the worker protocol. Rows arrive in a mailbox, batches are sent to the
// workers' connections, and returned rows are sent to the threads of their streams. Lanes makes the
// decisions; the hub adds the clock, the slabs and the messages.
//
// A failure confined to one worker (its slabs, its send queue) drops that worker. An allocation
// failure anywhere else ends the process, because rows could be lost or doubled.
//
// open(), add(), abandon(), free_room(), stream_budget() and description() are thread-safe.
// Everything else is confined to the home thread, which runs `home`.
class Hub final : public WorkerHost {
 public:
  // `home` and `stats` must outlive the hub.
  Hub(boost::asio::io_context& home, HubSettings settings, SlabSupply supply, LaneStats& stats);

  // The capacity for streams. The caller takes 1 before open(); the hub gives it back when the
  // stream's last row is done or the stream is dropped.
  Budget& stream_budget() { return stream_budget_; }
  // Adds a stream.
  void open(StreamIntro intro) { arrivals_.put(std::make_unique<StreamIntro>(std::move(intro))); }
  // Adds the next row of a stream. The row's frames must stay in place until the row is done.
  void add(StreamId stream, ReadyRow row) { arrivals_.put(AddedRow{stream, std::move(row)}); }
  // See Lanes::abandon(). Call it at most once for a stream.
  void abandon(StreamId stream) { arrivals_.put(stream); }
  // Messages of workers were written to the stream's client: this many bytes of its room are free.
  void free_room(StreamId stream, std::uint32_t bytes) { arrivals_.put(FreedRoom{stream, bytes}); }
  // add() for several rows, with one wake-up. Moves from them. Requires: there is one.
  struct AddedRow {
    StreamId stream;
    ReadyRow row;
  };
  struct FreedRoom {
    StreamId stream;
    std::uint32_t bytes;
  };
  using Arrival = std::variant<AddedRow, std::unique_ptr<StreamIntro>, StreamId, FreedRoom>;
  void add(std::span<Arrival> rows) { arrivals_.put_all(rows); }

  const HubSettings& settings() const { return settings_; }
  // The status of the attached workers.
  std::vector<WorkerStatus> workers(Time now) const { return workers_.status(lanes_, now); }

  void hello(WorkerConnection& link, const worker_protocol::Hello& hello) noexcept override;
  void receive(WorkerConnection& link, worker_protocol::ToService message) noexcept override;
  void lost(WorkerConnection& link, WorkerFailure why,
            LossCause cause = LossCause::worker) noexcept override;
  void protocol_error(WorkerConnection& link, std::string_view what) noexcept override;
  void no_room(WorkerConnection& link, std::string_view what) noexcept override;
  Result<worker_protocol::Welcome, worker_protocol::Refused> description() const override {
    return workers_.welcome();
  }
  const WorkerLog& log() const override { return settings_.log; }
  std::size_t post_bytes() const override { return most_batch_posts + settings_.longest_row_posts; }
  std::size_t batch_bytes() const override {
    const BatchShape& shape = settings_.welcome.shape;
    return shape.slab_bytes(shape.format.dtype);
  }

  // The service stops: batches close as soon as they have a row, and streams without a slot fail at
  // `wait_limit`.
  void drain(Time wait_limit) noexcept {
    lanes_.drain(wait_limit);
    settle(Clock::now());
  }
  // Sends Bye to all workers and watchers and ends their connections. After this the hub does
  // nothing, and new workers are refused.
  void stop() noexcept;

 private:
  void on_arrivals(std::vector<Arrival>& arrivals);
  void on_slab_messages(std::vector<SlabMessage>& messages);
  bool on_slab_report(const SlabReport& report, Time now);
  void on_slabs_made(MadeSlabs& made, Time now);
  void end_device(const SlabReport& report, const DeviceLost& lost, Time now);
  void receive_from_unattached(WorkerConnection& link, const worker_protocol::ToService& message);
  void remove_unattached(const WorkerConnection& link);
  void receive_bye(LaneId lane);
  void receive_unmapped(LaneId lane);
  void receive_done(LaneId lane, worker_protocol::Done done);
  void receive_late(LaneId lane, worker_protocol::LateAnswer late);
  void receive_send(WorkerConnection& link, LaneId lane, worker_protocol::Send send);
  void remove_lost(LaneId lane, std::string_view why,
                   const std::optional<worker_protocol::Refused>& refused, Time now);
  std::string_view name_of(const WorkerConnection& link);

  // Called after every change that can make a batch due or return rows: hands over due batches,
  // sends the returned rows, and sets the timer. O(lanes that changed), not O(lanes).
  void settle(Time now);
  void hand_over_batches(LaneId lane, AttachedWorker& worker, Time now);
  void send_returned();
  void end_lanes(Time now);
  void end_silent_watchers(Time now);
  void set_timer(Time now);
  void on_timer() noexcept;

  const HubSettings settings_;
  LaneStats& stats_;
  Budget stream_budget_;
  Mailbox<Arrival> arrivals_;
  Mailbox<SlabMessage> slab_messages_;
  StreamReturns streams_{stats_, settings_.log};
  Lanes lanes_;
  SlabMaker maker_;
  NewWorkers new_workers_{maker_};
  AttachedWorkers workers_;
  boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>,
                                    boost::asio::io_context::executor_type>
      timer_;
  Time timer_at_ = Time::max();
  Time next_heartbeat_;
  bool stopped_ = false;
  std::vector<LaneId> changed_;  // reused by settle()
};

}  // namespace millrace
