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

// Of slabs: no more than a few for each that there is.
constexpr std::size_t most_news = std::size_t{1} << 20;

// A timer that is later than this was delayed by this process: workers get that time in addition.
constexpr auto stall = std::chrono::milliseconds(500);

const wp::Refused stopping{"stopping", "the service is stopping"};

}  // namespace

Hub::Hub(boost::asio::io_context& home, HubSettings settings, SlabSupply supply, LaneStats& stats)
    : settings_(std::move(settings)),
      stats_(stats),
      room_(settings_.rule.batch.slots),
      arrivals_(home, settings_.streams * arrivals_per_stream(settings_),
                [this](std::vector<Arrival>& arrivals) { arrive(arrivals); }),
      news_(home, most_news, [this](std::vector<SlabNews>& news) { take(news); }),
      lanes_(settings_.rule),
      maker_(settings_.welcome.shape, supply, stats,
             [this](SlabNews news) { news_.put(std::move(news)); }),
      workers_(settings_.welcome, maker_, stats,
               [this](StreamId id) -> std::string_view { return streams_.name(id); }),
      timer_(home.get_executor()) {}

void Hub::arrive(std::vector<Arrival>& arrivals) {
  const Time now = Clock::now();
  for (Arrival& arrival : arrivals) {
    if (auto* row = std::get_if<AddedRow>(&arrival)) {
      lanes_.add(row->stream, std::move(row->row));
    } else {
      StreamIntro& intro = *std::get<std::unique_ptr<StreamIntro>>(arrival);
      lanes_.open(intro.id, now);
      streams_.open(std::move(intro));
    }
  }
  settle(now);
}

void Hub::hello(WorkerConnection& link, const wp::Hello& hello) noexcept {
  if (dismissed_) return link.refuse(stopping);
  if (hello.watch) {
    const Time now = Clock::now();
    workers_.add_watcher(link, hello.name, now);
    return settle(now);
  }
  if (const auto refused = new_workers_.add(link, hello)) {
    settings_.log(warning("worker refused", hello.name, refused->message));
    link.refuse(*refused);
  }
}

void Hub::take(std::vector<SlabNews>& news) {
  const Time now = Clock::now();
  bool changed = false;  // most copies end while their batch is at the worker: nothing is due then
  for (SlabNews& one : news) {
    if (auto* made = std::get_if<MadeSlabs>(&one)) {
      take(*made, now);
      changed = true;
    } else if (take(std::get<SlabReport>(one), now)) {
      changed = true;
    }
  }
  if (changed) settle(now);
}

bool Hub::take(const SlabReport& report, Time now) {
  maker_.count(report);
  new_workers_.note(report);
  if (const auto* lost = std::get_if<DeviceLost>(&report.what)) {
    end_device(report, *lost, now);
    return true;
  }
  const auto lane = workers_.take(report);
  if (lane) lanes_.slab_freed(*lane);
  return lane.has_value();
}

void Hub::take(MadeSlabs& made, Time now) {
  auto worker = new_workers_.take(made);
  const auto refused = worker ? new_workers_.refusal(*worker, made) : std::nullopt;
  if (!worker || refused) {
    if (made.slabs) maker_.free(std::move(*made.slabs));
    if (!worker) return;
    settings_.log(warning("worker refused", worker->name, refused->message));
    return worker->link->refuse(*refused);
  }
  settings_.log({"worker attached", worker->name});
  const std::string& why_it_copies = (*made.slabs)->notes().why_it_copies;
  if (!why_it_copies.empty()) settings_.log(warning("worker copies", worker->name, why_it_copies));
  workers_.attach(lanes_.attach(worker->credits, now), std::move(*worker), std::move(*made.slabs),
                  now);
}

// What its workers were handed last may never be there.
void Hub::end_device(const SlabReport& report, const DeviceLost& lost, Time now) {
  std::vector<LaneId> lanes;
  for (const auto& [lane, worker] : workers_.all())
    if (concerns(report, *worker.slabs)) lanes.push_back(lane);
  for (const LaneId lane : lanes) {
    lanes_.lost(lane, Blame::service, now);
    remove_lost(lane, lost.what, refusal_of(lost), now);
  }
  if (!lost.goes_on) settings_.device_lost(report.device, lost);
}

void Hub::receive(WorkerConnection& link, wp::ToService message) noexcept {
  const auto lane = workers_.lane_of(link);
  if (!lane) return receive_idle(link, message);
  lanes_.heard(*lane, Clock::now());
  if (auto* done = std::get_if<wp::Done>(&message)) return this->done(*lane, std::move(*done));
  if (std::holds_alternative<wp::Bye>(message)) return receive_bye(*lane);
  if (std::holds_alternative<wp::Unmapped>(message)) return unmapped(*lane);
  if (std::holds_alternative<wp::Hello>(message)) protocol_error(link, "a second Hello");
}

// A watcher, or a worker that is not welcomed yet, may show that it lives, or leave.
void Hub::receive_idle(WorkerConnection& link, const wp::ToService& message) {
  Watcher* const watcher = workers_.find_watcher(link);
  if (watcher) watcher->heard = Clock::now();
  const bool known = watcher || new_workers_.find(link);
  if (!known || std::holds_alternative<wp::Heartbeat>(message)) return;
  if (!std::holds_alternative<wp::Bye>(message))
    return protocol_error(link, watcher ? "what no watcher sends" : "a message before Welcome");
  remove_idle(link);
  link.say_bye();
}

void Hub::remove_idle(const WorkerConnection& link) {
  new_workers_.remove(link);
  workers_.remove_watcher(link);
}

void Hub::receive_bye(LaneId lane) {
  if (lanes_.leaving(lane)) return;
  settings_.log({"worker leaves", workers_.find(lane)->name, "it said Bye"});
  const Time now = Clock::now();
  lanes_.bye(lane, now);
  workers_.leave(lane);
  settle(now);
}

void Hub::unmapped(LaneId lane) {
  const AttachedWorker& worker = *workers_.find(lane);
  if (!workers_.leave_copies_to_worker(lane, "it cannot open the slabs on its device")) return;
  settings_.log(warning("worker copies", worker.name, worker.slabs->notes().why_it_copies));
  lanes_.slab_freed(lane);
  settle(Clock::now());
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

void Hub::remove_lost(LaneId lane, std::string_view why, const std::optional<wp::Refused>& refused,
                      Time now) {
  const AttachedWorker& worker = *workers_.find(lane);
  settings_.log(warning("worker lost", worker.name, why));
  if (refused) worker.link->refuse(*refused);
  workers_.remove(lane, why, now);
}

// Empty if the hub does not know the connection.
std::string_view Hub::name_of(const WorkerConnection& link) {
  if (const auto lane = workers_.lane_of(link)) return workers_.find(*lane)->name;
  if (const NewWorker* worker = new_workers_.find(link)) return worker->name;
  const Watcher* watcher = workers_.find_watcher(link);
  return watcher ? watcher->name : std::string_view();
}

void Hub::protocol_error(WorkerConnection& link, std::string_view what) noexcept {
  settings_.log(warning("worker broke the protocol", name_of(link), what));
  link.refuse({"protocol", std::string(what)});
  lost(link, WorkerFailure::protocol);
}

void Hub::no_room(WorkerConnection& link, std::string_view what) noexcept {
  settings_.log(warning("worker has no room", name_of(link), what));
  link.refuse({"no_room", std::string(what)});
  lost(link, WorkerFailure::timeout, Blame::service);
}

void Hub::lost(WorkerConnection& link, WorkerFailure why, Blame blame) noexcept {
  const auto lane = workers_.lane_of(link);
  const NewWorker* const worker = new_workers_.find(link);
  // To lose a process that takes no batches is no failure; what it does wrong is.
  if (lane || ((worker || workers_.find_watcher(link)) && why == WorkerFailure::protocol))
    stats_.failures[why].add();
  if (!lane) {
    if (worker && why != WorkerFailure::protocol)
      settings_.log(warning("worker refused", worker->name, hung_up));
    return remove_idle(link);
  }
  const Time now = Clock::now();
  lanes_.lost(*lane, blame, now);
  remove_lost(*lane, millrace::name_of(why), std::nullopt, now);
  settle(now);
}

void Hub::dismiss() noexcept {
  dismissed_ = true;
  workers_.dismiss_all();
  new_workers_.refuse_all(stopping);
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
    const std::string& why = events.why_overdue[i];
    stats_.failures[WorkerFailure::timeout].add();
    remove_lost(events.overdue[i], why, wp::Refused{"timeout", why}, now);
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
    link.refuse({"timeout", "nothing was heard"});
    workers_.remove_watcher(link);
  }
}

void Hub::serve(LaneId lane, AttachedWorker& worker, Time now) {
  auto slab_wanted = lanes_.slab_wanted(lane);
  while (const Batch* batch = lanes_.next(lane, worker.slabs->has_slab(), now)) {
    if (slab_wanted) stats_.slabs.wait.observe(now - *std::exchange(slab_wanted, std::nullopt));
    if (worker.idle) stats_.wait.observe(now - *std::exchange(worker.idle, std::nullopt));
    stats_.batch.count(*batch, settings_.welcome.shape.rows, settings_.welcome.shape.width);
    if (const auto* message = worker.slabs->write(*batch, streams_.opened(lanes_.opened())))
      workers_.hand(worker, *message);
  }
  if (!slab_wanted && lanes_.slab_wanted(lane)) stats_.slabs.exhausted.add();
  workers_.show_slabs(worker);
}

// The room is given back first: a client that receives its end may come again at once.
void Hub::send_returned() {
  room_.give_back(lanes_.events().gone.size());
  streams_.send(lanes_.events());
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
