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
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/budget.h"
#include "base/ids.h"
#include "base/returned.h"
#include "base/time.h"
#include "schemas/worker_messages.h"
#include "workers/hub/attached_workers.h"
#include "workers/hub/connection.h"
#include "workers/hub/mailbox.h"
#include "workers/lanes/lanes.h"
#include "workers/lanes/stats.h"
#include "workers/lanes/worker_status.h"

namespace millrace {

// What happened to which worker, or to a row of which stream, and why: a line for the log.
struct WorkerEvent {
  std::string_view what;    // a literal
  std::string_view worker;  // or empty
  std::string_view why = {};
  std::string_view stream = {};
  bool warning = false;  // somebody may want to do something about it
};

// Called on the home thread.
using WorkerLog = std::function<void(const WorkerEvent&)>;

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

// The way back to the thread on which streams live.
using ReturnBox = Mailbox<Returned>;

// Who a stream is, and where its rows come back to.
struct StreamIntro {
  StreamId id{};
  std::string name;
  std::string options;           // the client's JSON object, or empty
  ReturnBox* returns = nullptr;  // outlives the hub's run
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
  ~Hub();

  // Places for streams: a door takes one before open(), the hub gives it back when the stream is
  // gone.
  Budget& room() { return room_; }
  void open(StreamIntro intro);
  void add(StreamId stream, ReadyRow row);

  const HubSettings& settings() const { return settings_; }
  // The attached workers, as they are now.
  std::vector<WorkerStatus> workers(Time now) const;

  // A connection's first message: answered, later, with Welcome, or with Refused and the end.
  void hello(WorkerConnection& link, const worker_protocol::Hello& hello) noexcept;
  // Any other message. It may end the link. Of a link that was ended it is ignored.
  void receive(WorkerConnection& link, worker_protocol::ToService message) noexcept;
  // The connection is gone, or is being given up for `why`. Must be called for each link that said
  // hello before it goes; where the hub ended it already nothing happens.
  void lost(WorkerConnection& link, WorkerFailure why, Blame blame = Blame::worker) noexcept;
  void protocol_error(WorkerConnection& link, std::string_view what) noexcept;
  // What it says finds no room, which is no fault of it: it may come again.
  void no_room(WorkerConnection& link, std::string_view what) noexcept;

  // Batches close as soon as they have a row; streams without a slot fail at `give_up`.
  void drain(Time give_up) noexcept;
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
  void take(const std::vector<SlabReport>& reports);
  void take(std::vector<MadeSlabs>& made);
  void attach(MadeSlabs& made, Time now);
  void welcome(const NewWorker& worker, std::unique_ptr<WorkerSlabs> slabs, Time now);
  void note_lost(const AttachedWorker& worker, std::string_view why, Time now);
  static const char* code_of(const DeviceLost& lost);
  void end_device(const SlabReport& report, const DeviceLost& lost, Time now);
  void receive(Watcher& watcher, const worker_protocol::ToService& message);
  void receive_early(WorkerConnection& link, const worker_protocol::ToService& message);
  void receive_bye(LaneId lane);
  void unmapped(LaneId lane);
  void done(LaneId lane, worker_protocol::Done done);
  std::vector<worker_protocol::OpenedStream> opened() const;

  // After anything that may have made a batch due or something happen: hands over what is due,
  // tells what happened, sets the timer. Costs as much as there are lanes that changed, not as
  // there are lanes.
  void settle(Time now);
  void serve(LaneId lane, AttachedWorker& worker, Time now);
  void send_returned();
  void count(const RowDone& done, const StreamIntro& stream);
  void end_lanes(Time now);
  void end_silent_watchers(Time now);
  void set_timer(Time now);
  void on_timer() noexcept;

  const HubSettings settings_;
  LaneStats& stats_;
  Budget room_;
  Mailbox<Arrival> arrivals_;
  Mailbox<SlabReport> reports_;
  Mailbox<MadeSlabs> made_;
  Lanes lanes_;
  AttachedWorkers workers_;
  LostWorkers lost_;
  std::unordered_map<StreamId, StreamIntro> streams_;
  boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>,
                                    boost::asio::io_context::executor_type>
      timer_;
  Time timer_at_ = Time::max();
  Time next_beat_;
  bool dismissed_ = false;
  std::vector<LaneId> changed_;  // reused by settle()
};

}  // namespace millrace
