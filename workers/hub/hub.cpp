// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/hub.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "schemas/worker_protocol.h"
#include "workers/lanes/lane_gauges.h"

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
      reports_(home, most_reports, [this](std::vector<SlabReport>& reports) { take(reports); }),
      made_(home, most_reports, [this](std::vector<MadeSlabs>& made) { take(made); }),
      lanes_(settings_.rule),
      workers_(
          settings_.welcome, supply, stats,
          {.stream_name = [this](StreamId id) -> std::string_view { return streams_.at(id).name; },
           .slabs = {.report = [this](SlabReport report) { reports_.put(std::move(report)); },
                     .made = [this](MadeSlabs made) { made_.put(std::move(made)); }}}),
      timer_(home.get_executor()) {}

Hub::~Hub() = default;

void Hub::open(StreamIntro intro) {
  arrivals_.put(std::make_unique<StreamIntro>(std::move(intro)));
}

void Hub::add(StreamId stream, ReadyRow row) { arrivals_.put(AddedRow{stream, std::move(row)}); }

void Hub::arrive(std::vector<Arrival>& arrivals) {
  const Time now = Clock::now();
  for (Arrival& arrival : arrivals) {
    if (auto* row = std::get_if<AddedRow>(&arrival)) {
      lanes_.add(row->stream, std::move(row->row));
    } else {
      StreamIntro& intro = *std::get<std::unique_ptr<StreamIntro>>(arrival);
      const StreamId id = intro.id;
      streams_.emplace(id, std::move(intro));
      lanes_.open(id, now);
    }
  }
  settle(now);
}

void Hub::receive(WorkerConnection& link, wp::ToService message) noexcept {
  if (Watcher* watcher = workers_.find_watcher(link)) return receive(*watcher, message);
  const auto lane = workers_.lane_of(link);
  if (!lane) return receive_early(link, message);
  lanes_.heard(*lane, Clock::now());
  if (auto* done = std::get_if<wp::Done>(&message)) return this->done(*lane, std::move(*done));
  if (std::holds_alternative<wp::Bye>(message)) return receive_bye(*lane);
  if (std::holds_alternative<wp::Unmapped>(message)) return unmapped(*lane);
  if (std::holds_alternative<wp::Hello>(message)) protocol_error(link, "a second Hello");
}

void Hub::done(LaneId lane, wp::Done done) {
  const Time now = Clock::now();
  AttachedWorker& worker = *workers_.find(lane);
  Instants at;
  at.copied = worker.slabs->oldest_copied();
  // The clock of a worker on this machine is ours, but its word is not.
  at.taken = worker.process ? std::clamp(done.taken, at.copied, now) : at.copied;
  at.done = now;
  switch (lanes_.done(lane, done.batch, done.answers, done.mark_answers, at)) {
    case Lanes::Given::wrong:
      return protocol_error(*worker.link,
                            "a batch that is not its oldest, or another number of answers");
    case Lanes::Given::repeated: stats_.results[ResultStatus::late].add(); return;
    case Lanes::Given::taken: break;
  }
  worker.slabs->finish();
  const Time finished = worker.process ? std::clamp(done.done, at.taken, now) : now;
  stats_.compute.observe(finished - at.taken);
  worker.compute.observe(finished - at.taken);
  const auto staying = lanes_.lanes().find(lane);  // not one that has left with this batch
  if (staying != lanes_.lanes().end() && staying->second.held().empty()) worker.idle = now;
  settle(now);
}

std::vector<WorkerStatus> Hub::workers(Time now) const {
  std::vector<WorkerStatus> all;
  for (const auto& [id, worker] : workers_.all()) {
    const auto lane = lanes_.lanes().find(id);
    if (lane == lanes_.lanes().end()) continue;
    WorkerStatus& status = all.emplace_back(status_of(lane->second, worker.compute, now));
    status.name = worker.name;
    status.remote = !worker.process;
    status.attached = now - worker.attached;
    if (const auto* lost = lost_.find(worker.name))
      status.last_failure = {lost->why, now - lost->at};
  }
  return all;
}

void Hub::note_lost(const AttachedWorker& worker, std::string_view why, Time now) {
  settings_.log({.what = "worker lost", .worker = worker.name, .why = why, .warning = true});
  lost_.add(worker.name, why, now);
}

void Hub::protocol_error(WorkerConnection& link, std::string_view what) noexcept {
  settings_.log({.what = "worker broke the protocol",
                 .worker = workers_.name_of(link),
                 .why = what,
                 .warning = true});
  workers_.refuse(link, {"protocol", std::string(what)});
  lost(link, WorkerFailure::protocol);
}

void Hub::no_room(WorkerConnection& link, std::string_view what) noexcept {
  settings_.log({.what = "worker has no room",
                 .worker = workers_.name_of(link),
                 .why = what,
                 .warning = true});
  workers_.refuse(link, {"no_room", std::string(what)});
  lost(link, WorkerFailure::timeout, Blame::service);
}

void Hub::drain(Time give_up) noexcept {
  lanes_.drain(give_up);
  settle(Clock::now());
}

void Hub::dismiss() noexcept {
  dismissed_ = true;
  workers_.dismiss_all();
  timer_.cancel();
}

void Hub::settle(Time now) {
  if (dismissed_) return;
  send_returned();  // before the next batches are written
  lanes_.take_changed(changed_);
  for (const LaneId lane : changed_)
    if (AttachedWorker* worker = workers_.find(lane)) serve(lane, *worker, now);
  send_returned();
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
    const AttachedWorker& worker = *workers_.find(events.overdue[i]);
    const std::string& why = events.why_overdue[i];
    note_lost(worker, why, now);
    stats_.failures[WorkerFailure::timeout].add();
    workers_.refuse(*worker.link, {"timeout", why});
    workers_.remove(events.overdue[i]);
  }
  for (LaneId lane : events.left) {
    const AttachedWorker* const worker = workers_.find(lane);
    if (!worker) continue;  // lost with its device, after the loss of another lane had emptied it
    settings_.log({"worker left", worker->name});
    workers_.dismiss(lane);
  }
}

void Hub::end_silent_watchers(Time now) {
  for (Watcher* watcher = workers_.quietest_watcher();
       watcher && watcher->heard + settings_.rule.patience.silence <= now;
       watcher = workers_.quietest_watcher()) {
    settings_.log({"watcher lost", watcher->name, "no heartbeat"});
    WorkerConnection& link = *watcher->link;
    workers_.refuse(link, {"timeout", "nothing was heard"});
    workers_.remove_watcher(link);
  }
}

void Hub::serve(LaneId lane, AttachedWorker& worker, Time now) {
  auto slab_wanted = lanes_.slab_wanted(lane);
  while (const Batch* batch = lanes_.next(lane, worker.slabs->has_slab(), now)) {
    if (slab_wanted) stats_.slabs.wait.observe(now - *std::exchange(slab_wanted, std::nullopt));
    if (worker.idle) stats_.wait.observe(now - *std::exchange(worker.idle, std::nullopt));
    stats_.batch.count(*batch, settings_.welcome.shape.rows, settings_.welcome.shape.width);
    if (const auto* message = worker.slabs->write(*batch, opened()))
      workers_.hand(worker, *message);
  }
  if (!slab_wanted && lanes_.slab_wanted(lane)) stats_.slabs.exhausted.add();
  workers_.show_slabs(worker);
}

std::vector<wp::OpenedStream> Hub::opened() const {
  std::vector<wp::OpenedStream> opened;
  for (const BatchRow* row : lanes_.opened()) {
    const StreamIntro& intro = streams_.at(row->stream);
    opened.push_back({row->stream, number(row->slot), intro.name, intro.options});
  }
  return opened;
}

// Sends the streams' threads what became of their rows.
void Hub::send_returned() {
  LaneEvents& events = lanes_.events();
  // First: a client that receives its end may come again at once.
  room_.give_back(events.gone.size());
  for (Returned& returned : events.returned) {
    const StreamIntro& stream = streams_.at(returned.stream);
    if (const auto* done = std::get_if<RowDone>(&returned.what)) count(*done, stream);
    stream.returns->put(std::move(returned));
  }
  for (StreamId id : events.gone) streams_.erase(id);
  events.returned.clear();
  events.gone.clear();
}

void Hub::count(const RowDone& done, const StreamIntro& stream) {
  if (done.answer.kind == Answer::Kind::none) return;
  const bool failed = done.answer.kind == Answer::Kind::error;
  stats_.results[failed ? ResultStatus::error : ResultStatus::ok].add();
  if (failed)
    settings_.log({.what = "row failed",
                   .worker = {},
                   .why = done.answer.data,
                   .stream = stream.name,
                   .warning = true});
}

void Hub::set_timer(Time now) {
  Time due = lanes_.deadline();
  // Also for streams that wait: without a timer that is due soon nobody sees how long this process
  // was stopped.
  if (!workers_.empty() || lanes_.waiting() > 0) due = std::min(due, next_beat_);
  if (const Watcher* watcher = workers_.quietest_watcher())
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
    workers_.beat();
    next_beat_ = now + wp::Heartbeats{}.interval;
  }
  if (const Duration late = now - was_due; late > stall) {
    lanes_.shift(late, now);
    workers_.shift_watchers(late, now);
  } else {  // when it was late, only after what workers sent meanwhile is read: it fires again at
            // once
    lanes_.expire(now);
    end_silent_watchers(now);
  }
  settle(now);
}

}  // namespace millrace
