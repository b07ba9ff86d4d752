// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
#include "workers/hub/worker_log.h"
#include "workers/lanes/lanes.h"
#include "workers/lanes/stats.h"
#include "workers/lanes/worker_status.h"

namespace millrace {

// What a pipeline's workers are told and given.
struct HubSettings {
  std::string pipeline;
  LanesRule rule;
  WelcomeSettings welcome;
  std::uint64_t streams = 0;    // live ones that the whole process may have: bounds the mailbox
  std::uint64_t tail_rows = 0;  // that the end of a segment can give; so does this
  WorkerLog log;
  // A device has failed, and this process with it: nothing here goes to it any more. On the home
  // thread.
  std::function<void(std::size_t device, const DeviceLost&)> device_lost = [](auto, const auto&) {};
};

// One pipeline's lanes at work: rows come in by a mailbox, batches go out to the workers' links,
// what workers give back goes to the streams' own threads. What it decides is decided by Lanes;
// here are the clock, the slabs and the messages.
//
// What fails for one worker, its slabs or what waits to be sent to it, costs that worker. What
// fails in between, for want of memory, ends the process: rows would be lost or doubled otherwise.
//
// open(), add() and room() are thread-safe; everything else is confined to the home thread, the
// one that runs `home`.
class Hub {
 public:
  // `home` and `stats` outlive the hub.
  Hub(boost::asio::io_context& home, HubSettings settings, SlabSupply supply, LaneStats& stats);

  // Places for streams: a door takes one before open(), the hub gives it back when the stream is
  // gone.
  Budget& room() { return room_; }
  void open(StreamIntro intro) { arrivals_.put(std::make_unique<StreamIntro>(std::move(intro))); }
  void add(StreamId stream, ReadyRow row) { arrivals_.put(AddedRow{stream, std::move(row)}); }

  const HubSettings& settings() const { return settings_; }
  // The attached workers, as they are now.
  std::vector<WorkerStatus> workers(Time now) const { return workers_.status(lanes_, now); }

  // A connection's first message: answered, later, with Welcome, or with Refused and the end.
  void hello(WorkerConnection& link, const worker_protocol::Hello& hello) noexcept;
  // Any other message. It may end the link. Of a link that was ended it is ignored.
  void receive(WorkerConnection& link, worker_protocol::ToService message) noexcept;
  // The connection is gone, or is being given up for `why`. Must be called for each link that said
  // hello before it goes; where the hub ended it already nothing happens.
  void lost(WorkerConnection& link, WorkerFailure why, Blame blame = Blame::worker) noexcept;
  void protocol_error(WorkerConnection& link, std::string_view what) noexcept;
  // There is no memory for its messages, which is no fault of the worker: it may attach again.
  void no_room(WorkerConnection& link, std::string_view what) noexcept;

  // Batches close as soon as they have a row; streams without a slot fail at `give_up`.
  void drain(Time give_up) noexcept {
    lanes_.drain(give_up);
    settle(Clock::now());
  }
  // Says Bye to all workers and ends their links. Nothing happens here any more, and who says hello
  // is refused.
  void dismiss() noexcept;

 private:
  struct AddedRow {
    StreamId stream;
    ReadyRow row;
  };
  using Arrival = std::variant<AddedRow, std::unique_ptr<StreamIntro>>;

  void arrive(std::vector<Arrival>& arrivals);
  void take(std::vector<SlabNews>& news);
  bool take(const SlabReport& report, Time now);
  void take(MadeSlabs& made, Time now);
  void end_device(const SlabReport& report, const DeviceLost& lost, Time now);
  void receive_idle(WorkerConnection& link, const worker_protocol::ToService& message);
  void remove_idle(const WorkerConnection& link);
  void receive_bye(LaneId lane);
  void unmapped(LaneId lane);
  void done(LaneId lane, worker_protocol::Done done);
  void remove_lost(LaneId lane, std::string_view why,
                   const std::optional<worker_protocol::Refused>& refused, Time now);
  std::string_view name_of(const WorkerConnection& link);

  // After anything that may have made a batch due or something happen: hands over what is due,
  // sends what became of rows, sets the timer. Costs as much as there are lanes that changed, not
  // as there are lanes.
  void settle(Time now);
  void serve(LaneId lane, AttachedWorker& worker, Time now);
  void send_returned();
  void end_lanes(Time now);
  void end_silent_watchers(Time now);
  void set_timer(Time now);
  void on_timer() noexcept;

  const HubSettings settings_;
  LaneStats& stats_;
  Budget room_;
  Mailbox<Arrival> arrivals_;
  Mailbox<SlabNews> news_;
  StreamReturns streams_{stats_, settings_.log};
  Lanes lanes_;
  SlabMaker maker_;
  NewWorkers new_workers_{maker_};
  AttachedWorkers workers_;
  boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>,
                                    boost::asio::io_context::executor_type>
      timer_;
  Time timer_at_ = Time::max();
  Time next_beat_;
  bool dismissed_ = false;
  std::vector<LaneId> changed_;  // reused by settle()
};

}  // namespace millrace
