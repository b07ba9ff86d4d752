// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/hub.h"

#include <algorithm>
#include <utility>

#include "base/message_room.h"
#include "schemas/worker_protocol.h"
#include "workers/lanes/lane_gauges.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

// The ready rows of a stream, its opening, the loss of its client and freed room, twice: as many
// may be queued when the lanes drop the stream. A stream that aborts before a worker had a row of
// it adds all rows of its segment's end at once.
std::size_t arrivals_per_stream(const HubSettings& settings) {
  constexpr std::size_t rooms = stream_room / room_step;
  return 2 * (max_ready_rows + 3 + rooms) + settings.tail_rows;
}

constexpr std::size_t max_slab_messages = std::size_t{1} << 20;  // above a few for each slab

// If the timer is later than this, this process did not run: deadlines are extended by the delay.
constexpr auto stall = std::chrono::milliseconds(500);

const wp::Refused stopping{"stopping", "the service is stopping"};

}  // namespace

Hub::Hub(boost::asio::io_context& home, HubSettings settings, SlabSupply supply, LaneStats& stats)
    : settings_(std::move(settings)),
      stats_(stats),
      stream_budget_(settings_.rule.batch.slots),
      arrivals_(home, settings_.streams * arrivals_per_stream(settings_),
                [this](std::vector<Arrival>& arrivals) { on_arrivals(arrivals); }),
      slab_messages_(home, max_slab_messages,
                     [this](std::vector<SlabMessage>& messages) { on_slab_messages(messages); }),
      lanes_(settings_.rule),
      maker_(settings_.welcome.shape, supply, stats,
             [this](SlabMessage messages) { slab_messages_.put(std::move(messages)); }),
      workers_(settings_.welcome, maker_, stats,
               [this](StreamId id) -> std::string_view { return streams_.name(id); }),
      timer_(home.get_executor()) {}

void Hub::on_arrivals(std::vector<Arrival>& arrivals) {
  const Time now = Clock::now();
  for (Arrival& arrival : arrivals) {
    if (auto* row = std::get_if<AddedRow>(&arrival)) {
      lanes_.add(row->stream, std::move(row->row));
    } else if (const auto* abandoned = std::get_if<StreamId>(&arrival)) {
      lanes_.abandon(*abandoned);
    } else if (const auto* freed = std::get_if<FreedRoom>(&arrival)) {
      if (const auto lane = lanes_.free_room(freed->stream, freed->bytes))
        workers_.give_room(*lane, {freed->stream, freed->bytes});
    } else {
      auto& intro = std::get<std::unique_ptr<StreamIntro>>(arrival);
      lanes_.open(intro->id, now);
      streams_.open(std::move(*intro));
    }
  }
  settle(now);
}

void Hub::hello(WorkerConnection& link, const wp::Hello& hello) noexcept {
  if (stopped_) return link.refuse(stopping);
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

void Hub::receive(WorkerConnection& link, wp::ToService message) noexcept {
  const auto lane = workers_.lane_of(link);
  if (!lane) return receive_from_unattached(link, message);
  lanes_.on_message(*lane, Clock::now());
  if (auto* done = std::get_if<wp::Done>(&message))
    return this->receive_done(*lane, std::move(*done));
  if (auto* send = std::get_if<wp::Send>(&message))
    return receive_send(link, *lane, std::move(*send));
  if (auto* late = std::get_if<wp::LateAnswer>(&message))
    return receive_late(*lane, std::move(*late));
  if (std::holds_alternative<wp::Bye>(message)) return receive_bye(*lane);
  if (std::holds_alternative<wp::Unmapped>(message)) return receive_unmapped(*lane);
  if (!std::holds_alternative<wp::Heartbeat>(message)) protocol_error(link, "a second Hello");
}

// Watchers, and workers before Welcome, may send Heartbeat and Bye only.
void Hub::receive_from_unattached(WorkerConnection& link, const wp::ToService& message) {
  Watcher* const watcher = workers_.find_watcher(link);
  if (watcher) watcher->last_received = Clock::now();
  const bool found = watcher || new_workers_.find(link);
  if (!found || std::holds_alternative<wp::Heartbeat>(message)) return;
  if (!std::holds_alternative<wp::Bye>(message))
    return protocol_error(
        link, watcher ? "a message that watchers may not send" : "a message before Welcome");
  remove_unattached(link);
  link.send_bye();
}

void Hub::remove_unattached(const WorkerConnection& link) {
  new_workers_.remove(link);
  workers_.remove_watcher(link);
}

void Hub::receive_bye(LaneId lane) {
  if (lanes_.leaving(lane)) return;
  const Time now = Clock::now();
  const MovedStreams streams = lanes_.bye(lane, now);
  const std::string& name = workers_.find(lane)->name;
  settings_.log({"worker leaves", name, "it sent Bye", {}, false, streams});
  workers_.leave(lane, streams);
  settle(now);
}

void Hub::receive_done(LaneId lane, wp::Done done) {
  const Time now = Clock::now();
  AttachedWorker& worker = *workers_.find(lane);
  Instants at;
  at.copied = worker.slabs->oldest_copied();
  // A worker on this machine has the same clock, but its values are not trusted.
  at.taken = worker.process ? std::clamp(done.taken, at.copied, now) : at.copied;
  at.done = now;
  switch (lanes_.done(lane, done.batch, done.answers, done.mark_answers, at)) {
    case Lanes::DoneResult::wrong:
      return protocol_error(
          *worker.link,
          "Done for a batch that is not its oldest, or with a wrong number of answers");
    case Lanes::DoneResult::repeated: stats_.results[ResultStatus::late].add(); return;
    case Lanes::DoneResult::accepted: break;
  }
  worker.slabs->finish();
  const Time finished = worker.process ? std::clamp(done.done, at.taken, now) : now;
  stats_.compute.observe(finished - at.taken);
  worker.compute.observe(finished - at.taken);
  const auto staying = lanes_.lanes().find(lane);  // absent if the worker left with this batch
  if (staying != lanes_.lanes().end() && staying->second.held().empty()) worker.idle = now;
  settle(now);
}

void Hub::receive_late(LaneId lane, wp::LateAnswer late) {
  const Time now = Clock::now();
  if (lanes_.answer(lane, late.stream, late.seq, late.answer, now)) return settle(now);
  stats_.results[ResultStatus::late].add();
  if (!lanes_.serves(lane, late.stream)) workers_.give_room(lane, {late.stream, 0});
}

void Hub::receive_send(WorkerConnection& link, LaneId lane, wp::Send send) {
  switch (lanes_.send(lane, send.stream, send.seq, send.message)) {
    case Lanes::SendResult::wrong:
      return protocol_error(
          link, "a message beyond the room of its stream, or about a row that it never had");
    case Lanes::SendResult::late:
      workers_.give_room(lane, {send.stream, 0});
      return stats_.messages[MessageStatus::late].add();
    case Lanes::SendResult::accepted: stats_.messages[MessageStatus::ok].add(); send_returned();
  }
}

void Hub::remove_lost(LaneId lane, std::string_view why, const std::optional<wp::Refused>& refused,
                      Time now) {
  const AttachedWorker& worker = *workers_.find(lane);
  settings_.log(warning("worker lost", worker.name, why, {}, lanes_.moved_from(lane)));
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
  settings_.log(warning("no room for worker messages", name_of(link), what));
  link.refuse({"no_room", std::string(what)});
  lost(link, WorkerFailure::timeout, LossCause::service);
}

void Hub::lost(WorkerConnection& link, WorkerFailure why, LossCause cause) noexcept {
  const auto lane = workers_.lane_of(link);
  const NewWorker* const worker = new_workers_.find(link);
  // The loss of a watcher or a new worker is no failure, but a protocol error is.
  if (lane || ((worker || workers_.find_watcher(link)) && why == WorkerFailure::protocol))
    stats_.failures[why].add();
  if (!lane) {
    if (worker && why != WorkerFailure::protocol)
      settings_.log(warning("worker refused", worker->name, disconnected_early));
    return remove_unattached(link);
  }
  const Time now = Clock::now();
  lanes_.lost(*lane, cause, now);
  remove_lost(*lane, millrace::name_of(why), std::nullopt, now);
  settle(now);
}

void Hub::stop() noexcept {
  stopped_ = true;
  workers_.disconnect_all();
  new_workers_.refuse_all(stopping);
  timer_.cancel();
}

void Hub::settle(Time now) {
  if (stopped_) return;
  send_returned();  // before the next batches are written
  lanes_.take_changed(changed_);
  for (const LaneId lane : changed_)
    if (AttachedWorker* worker = workers_.find(lane)) hand_over_batches(lane, *worker, now);
  send_returned();
  LaneEvents& events = lanes_.events();
  const bool fewer_lanes = !events.overdue.empty() || !events.left.empty();
  end_lanes(now);
  events.clear();
  if (fewer_lanes) return settle(now);
  stream_budget_.set_limit(lanes_.capacity());
  update_gauges(lanes_, settings_.rule.batch, stats_);
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
    if (!worker) continue;  // end_device() removed it after its lane had become empty
    settings_.log({"worker left", worker->name});
    workers_.disconnect(lane);
  }
}

void Hub::end_silent_watchers(Time now) {
  for (Watcher* watcher = workers_.longest_silent_watcher();
       watcher && watcher->last_received + settings_.rule.timeouts.silence <= now;
       watcher = workers_.longest_silent_watcher()) {
    settings_.log({"watcher lost", watcher->name, "no heartbeat"});
    WorkerConnection& link = *watcher->link;
    link.refuse({"timeout", "no heartbeat"});
    workers_.remove_watcher(link);
  }
}

void Hub::hand_over_batches(LaneId lane, AttachedWorker& worker, Time now) {
  auto slab_needed_since = lanes_.slab_needed_since(lane);
  while (const Batch* batch = lanes_.next(lane, worker.slabs->has_slab(), now)) {
    if (slab_needed_since)
      stats_.slabs.wait.observe(now - *std::exchange(slab_needed_since, std::nullopt));
    if (worker.idle) stats_.wait.observe(now - *std::exchange(worker.idle, std::nullopt));
    stats_.batch.count(*batch, settings_.welcome.shape.rows);
    if (const auto* message = worker.slabs->write(*batch, streams_.opened(lanes_.opened())))
      workers_.hand_over(worker, *message);
  }
  if (!slab_needed_since && lanes_.slab_needed_since(lane)) stats_.slabs.exhausted.add();
  workers_.update_slab_gauges(worker);
}

// Gives the capacity back first: a client may open its next stream at once.
void Hub::send_returned() {
  stream_budget_.give_back(lanes_.events().finished.size());
  streams_.send(lanes_.events());
}

void Hub::set_timer(Time now) {
  Time due = lanes_.deadline();
  // Also while streams wait for a slot: the timer's delay shows how long this process did not run.
  if (!workers_.empty() || lanes_.waiting() > 0) due = std::min(due, next_heartbeat_);
  if (const Watcher* watcher = workers_.longest_silent_watcher())
    due = std::min(due, watcher->last_received + settings_.rule.timeouts.silence);
  due = std::max(due, now);      // on_timer() measures the delay of the thread, not that of `due`
  if (due >= timer_at_) return;  // on_timer() sets it again
  timer_at_ = due;
  timer_.expires_at(due);
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) on_timer();
  });
}

void Hub::on_timer() noexcept {
  const Time now = Clock::now(), was_due = std::exchange(timer_at_, Time::max());
  if (now >= next_heartbeat_) {
    workers_.send_heartbeats(lanes_);
    next_heartbeat_ = now + wp::Heartbeats{}.interval;
  }
  if (const Duration late = now - was_due; late > stall) {
    lanes_.extend_deadlines(late, now);
    workers_.extend_watcher_deadlines(late, now);
  } else {  // after a delay the timer fires again at once, when the workers' messages were read
    lanes_.expire(now);
    end_silent_watchers(now);
  }
  settle(now);
}

}  // namespace millrace
