// SPDX-License-Identifier: Apache-2.0
#include "workers/hub.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "workers/lane_gauges.h"
#include "workers/protocol.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

// Its ready rows and its opening; as much again may be on its way when the lanes drop it. One that
// aborts before a worker had a row of it gives those of its segment's end at once.
std::size_t arrivals_per_stream(const HubSettings& settings) {
  return 2 * max_ready_rows + 4 + settings.tail_rows;
}

// Of devices: no more than a few for each slab that there is.
constexpr std::size_t most_reports = std::size_t{1} << 20;

// A timer that is later than this was delayed by this process: workers get that time in addition.
constexpr auto stall = std::chrono::milliseconds(500);

}  // namespace

Hub::Hub(boost::asio::io_context& home, HubSettings settings, SlabSupply supply, LaneStats& stats)
    : settings_(std::move(settings)),
      stats_(stats),
      room_(settings_.rule.batch.slots),
      arrivals_(home, settings_.streams * arrivals_per_stream(settings_),
                [this](std::vector<Arrival>& arrivals) { arrive(arrivals); }),
      reports_(home, most_reports, [this](std::vector<FeedReport>& reports) { take(reports); }),
      made_(home, most_reports, [this](std::vector<MadeFeed>& made) { take(made); }),
      lanes_(settings_.rule),
      seats_(
          settings_.seats, supply, stats,
          {.stream_name = [this](StreamId id) -> std::string_view { return streams_.at(id).name; },
           .feeds = {.report = [this](FeedReport report) { reports_.put(std::move(report)); },
                     .made = [this](MadeFeed made) { made_.put(std::move(made)); }}}),
      timer_(home.get_executor()) {}

Hub::~Hub() = default;

void Hub::open(StreamIntro intro) {
  const StreamId id = intro.id;
  arrivals_.put(
      {.stream = id, .intro = std::make_unique<StreamIntro>(std::move(intro)), .row = {}});
}

void Hub::add(StreamId stream, ReadyRow row) {
  arrivals_.put({.stream = stream, .intro = nullptr, .row = std::move(row)});
}

void Hub::arrive(std::vector<Arrival>& arrivals) {
  const Time now = Clock::now();
  for (Arrival& arrival : arrivals) {
    if (arrival.intro) {
      streams_.emplace(arrival.stream, std::move(*arrival.intro));
      lanes_.open(arrival.stream, now);
    } else {
      lanes_.add(arrival.stream, std::move(arrival.row));
    }
  }
  settle(now);
}

void Hub::receive(WorkerConnection& link, wp::ToService message) noexcept {
  if (Watcher* watcher = seats_.find_watcher(link)) return receive(*watcher, message);
  const auto lane = seats_.lane_of(link);
  if (!lane) return receive_early(link, message);
  lanes_.heard(*lane, Clock::now());
  if (auto* done = std::get_if<wp::Done>(&message)) return this->done(*lane, std::move(*done));
  if (std::holds_alternative<wp::Bye>(message)) return receive_bye(*lane);
  if (std::holds_alternative<wp::Unmapped>(message)) return unmapped(*lane);
  if (std::holds_alternative<wp::Hello>(message)) protocol_error(link, "a second Hello");
}

void Hub::done(LaneId lane, wp::Done done) {
  const Time now = Clock::now();
  Seat& seat = *seats_.find(lane);
  switch (lanes_.done(lane, done.batch, done.answers, done.mark_answers, now)) {
    case Lanes::Given::wrong:
      return protocol_error(*seat.link,
                            "a batch that is not its oldest, or another number of answers");
    case Lanes::Given::repeated: stats_.results[ResultStatus::late].add(); return;
    case Lanes::Given::taken: break;
  }
  Instants at;
  at.copied = seat.feed.lane->finish();
  // The clock of a worker on this machine is ours, but its word is not.
  at.taken = seat.process ? std::clamp(done.taken, at.copied, now) : at.copied;
  at.done = now;
  const Time finished = seat.process ? std::clamp(done.done, at.taken, now) : now;
  stats_.compute.observe(finished - at.taken);
  book_.done(lane, finished - at.taken);
  const auto staying = lanes_.lanes().find(lane);  // not one that has left with this batch
  if (staying != lanes_.lanes().end() && staying->second.held().empty()) seat.idle = now;
  tell(at);
  settle(now);
}

void Hub::protocol_error(WorkerConnection& link, std::string_view what) noexcept {
  settings_.log({.what = "worker broke the protocol",
                 .worker = seats_.name_of(link),
                 .why = what,
                 .warning = true});
  seats_.refuse(link, {"protocol", std::string(what)});
  lost(link, WorkerFailure::protocol);
}

void Hub::no_room(WorkerConnection& link, std::string_view what) noexcept {
  settings_.log(
      {.what = "worker has no room", .worker = seats_.name_of(link), .why = what, .warning = true});
  seats_.refuse(link, {"no_room", std::string(what)});
  lost(link, WorkerFailure::timeout, Blame::service);
}

void Hub::drain(Time give_up) noexcept {
  lanes_.drain(give_up);
  settle(Clock::now());
}

void Hub::dismiss() noexcept {
  dismissed_ = true;
  seats_.dismiss_all();
  timer_.cancel();
}

void Hub::settle(Time now) {
  if (dismissed_) return;
  lanes_.take_changed(changed_);
  for (const LaneId lane : changed_)
    if (Seat* seat = seats_.find(lane)) serve(lane, *seat, now);
  Instants given_up;  // of rows that no worker will have again
  given_up.copied = given_up.taken = given_up.done = now;
  tell(given_up);
  LaneEvents& events = lanes_.events();
  const bool fewer_lanes = !events.overdue.empty() || !events.left.empty();
  end_lanes(now);
  events.clear();
  if (fewer_lanes) return settle(now);
  room_.set_limit(lanes_.capacity());
  show(lanes_, settings_.rule.batch, stats_);
  set_timer(now);
}

void Hub::end_lanes(Time now) {
  const LaneEvents& events = lanes_.events();
  for (std::size_t i = 0; i < events.overdue.size(); ++i) {
    const Seat& seat = *seats_.find(events.overdue[i]);
    const std::string& why = events.why_overdue[i];
    settings_.log({.what = "worker lost", .worker = seat.name, .why = why, .warning = true});
    book_.lost(events.overdue[i], why, now);
    stats_.failures[WorkerFailure::timeout].add();
    seats_.refuse(*seat.link, {"timeout", why});
    seats_.remove(events.overdue[i]);
  }
  for (LaneId lane : events.left) {
    const Seat* const seat = seats_.find(lane);
    if (!seat) continue;  // lost with its device, after the loss of another lane had emptied it
    settings_.log({"worker left", seat->name});
    book_.left(lane);
    seats_.dismiss(lane);
  }
}

void Hub::end_silent_watchers(Time now) {
  for (Watcher* watcher = seats_.quietest_watcher();
       watcher && watcher->heard + settings_.rule.patience.silence <= now;
       watcher = seats_.quietest_watcher()) {
    settings_.log({"watcher lost", watcher->name, "no heartbeat"});
    WorkerConnection& link = *watcher->link;
    seats_.refuse(link, {"timeout", "nothing was heard"});
    seats_.remove_watcher(link);
  }
}

void Hub::serve(LaneId lane, Seat& seat, Time now) {
  for (;;) {
    lanes_.set_slab(lane, seat.feed.lane->has_slab(), now);
    Batch* const batch = lanes_.next(lane, now);
    if (!batch) break;
    if (seat.without_slab)
      stats_.slabs.wait.observe(now - *std::exchange(seat.without_slab, std::nullopt));
    if (seat.idle) stats_.wait.observe(now - *std::exchange(seat.idle, std::nullopt));
    stats_.batch.count(*batch, settings_.seats.shape.rows, settings_.seats.shape.width);
    if (const auto* message = seat.feed.lane->write(*batch, opened())) seats_.hand(seat, *message);
  }
  if (!seat.without_slab && lanes_.wants_slab(lane, now)) {
    seat.without_slab = now;
    stats_.slabs.exhausted.add();
  }
  seats_.show_slabs(seat);
}

std::vector<wp::OpenedStream> Hub::opened() const {
  std::vector<wp::OpenedStream> opened;
  for (const BatchRow* row : lanes_.opened()) {
    const StreamIntro& intro = streams_.at(row->stream);
    opened.push_back({row->stream, number(row->slot), intro.name, intro.options});
  }
  return opened;
}

// Tells the streams' threads what became of their rows. `at` holds for the rows done by the one
// call since the last time.
void Hub::tell(const Instants& at) {
  LaneEvents& events = lanes_.events();
  // First: a client that is told of its end may come again at once.
  room_.give_back(events.gone.size());
  for (StreamId id : events.taken)
    streams_.at(id).returns->put({.stream = id, .what = Returned::What::taken});
  for (LaneEvents::Done& done : events.done) {
    const StreamIntro& stream = streams_.at(done.stream);
    if (done.answer.kind == Answer::Kind::error) {
      stats_.results[ResultStatus::error].add();
      settings_.log({.what = "row failed",
                     .worker = {},
                     .why = done.answer.data,
                     .stream = stream.name,
                     .warning = true});
    } else if (done.answer.kind != Answer::Kind::none) {
      stats_.results[ResultStatus::ok].add();
    }
    Instants row_at = at;
    row_at.arrived = done.row.arrived;
    row_at.ready = done.row.ready;
    // The time at workers that were lost was after its first batch had closed.
    row_at.closed = done.closed - done.row.lost;
    row_at.copied -= done.row.lost;
    stream.returns->put({.stream = done.stream,
                         .what = Returned::What::done,
                         .flags = done.row.row.flags,
                         .reason = done.row.row.reason,
                         .seq = done.row.row.seq,
                         .answer = std::move(done.answer),
                         .at = row_at,
                         .place = done.place});
  }
  for (const LaneEvents::Dropped& dropped : events.dropped)
    streams_.at(dropped.stream)
        .returns->put(
            {.stream = dropped.stream, .what = Returned::What::dropped, .code = dropped.code});
  for (StreamId id : events.gone) streams_.erase(id);
  events.taken.clear();
  events.done.clear();
  events.dropped.clear();
  events.gone.clear();
}

void Hub::set_timer(Time now) {
  Time due = lanes_.deadline();
  // Also for streams that wait: without a timer that is due soon nobody sees how long this process
  // was stopped.
  if (!seats_.empty() || lanes_.waiting() > 0) due = std::min(due, next_beat_);
  if (const Watcher* watcher = seats_.quietest_watcher())
    due = std::min(due, watcher->heard + settings_.rule.patience.silence);
  due = std::max(due, now);  // on_timer() measures how late this thread is, not how late `due` was
  if (due >= timer_at_) return;  // it fires earlier and is set again then
  timer_at_ = due;
  timer_.expires_at(due);
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) on_timer();
  });
}

void Hub::on_timer() noexcept {
  const Time now = Clock::now(), was_due = std::exchange(timer_at_, Time::max());
  if (now >= next_beat_) {
    seats_.beat();
    next_beat_ = now + wp::Heartbeats{}.interval;
  }
  if (const Duration late = now - was_due; late > stall) {
    lanes_.shift(late, now);
    seats_.shift_watchers(late, now);
  } else {  // when it was late, only after what workers sent meanwhile is read: it fires again at
            // once
    lanes_.expire(now);
    end_silent_watchers(now);
  }
  settle(now);
}

}  // namespace millrace
