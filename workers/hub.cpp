// SPDX-License-Identifier: Apache-2.0
#include "workers/hub.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "workers/protocol.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

// A stream has at most 8 rows in no batch, and its opening; as much again may be on its way when
// the lanes drop it.
constexpr std::size_t arrivals_per_stream = 20;
// A watcher that is slower than this misses batches.
constexpr std::size_t watcher_backlog = std::size_t{4} << 20;
// A timer that is late by so much says more about us than about the workers.
constexpr auto stall = std::chrono::milliseconds(500);

}  // namespace

struct Hub::Seat {
  LaneId lane{};
  WorkerConnection* link = nullptr;
  std::string name;
  std::unique_ptr<LaneFeed> feed;
  std::uint64_t slab_bytes = 0;  // of the budget
  std::optional<Time> idle;      // since when the worker has no batch
  bool alone = false;            // it leaves when there is another
};

Hub::Hub(boost::asio::io_context& home, HubSettings settings, Budget& slab_bytes, LaneStats& stats)
    : settings_(std::move(settings)),
      slab_bytes_(slab_bytes),
      stats_(stats),
      room_(settings_.rule.batch.slots),
      arrivals_(home, settings_.streams * arrivals_per_stream,
                [this](std::vector<Arrival>& arrivals) { arrive(arrivals); }),
      lanes_(settings_.rule),
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

void Hub::hello(WorkerConnection& link, const wp::Hello& hello) {
  if (hello.watch) {
    watchers_.push_back(&link);
    wp::Welcome welcome = {};
    welcome.slots = settings_.shape.slots;
    welcome.rows = settings_.shape.rows;
    welcome.width = settings_.shape.width;
    welcome.frames = settings_.frames;
    welcome.frames.element = settings_.shape.format.dtype;
    welcome.chunk = settings_.chunk;
    link.send(encoder_.encode(welcome));
    announce_company();
    settle(Clock::now());
    return;
  }
  try {
    attach(link, hello);
  } catch (const std::exception& error) {
    refuse(link, "internal", "no slabs could be made for this worker");
    settings_.log("worker refused", hello.name, error.what());
  }
}

void Hub::attach(WorkerConnection& link, const wp::Hello& hello) {
  auto device = open_device(hello.device);
  if (!device) return refuse(link, "device", device.error().message);
  // One more than the worker may hold, so that the next batch is laid out while it computes.
  const std::uint32_t slabs = hello.credits + 1;
  const Element element = (*device)->slab_element(settings_.shape.format);
  const std::uint64_t bytes = slabs * settings_.shape.slab_bytes(element);
  if (!slab_bytes_.try_take(bytes))
    return refuse(link, "no_room", "the slabs of this worker would pass [limits] slab_bytes");

  const Time now = Clock::now();
  Seat fresh;
  fresh.slab_bytes = bytes;
  fresh.link = &link;
  fresh.name = hello.name;
  fresh.idle = now;
  fresh.alone = hello.alone;
  const LaneId lane = lanes_.attach(hello.credits, now);
  fresh.lane = lane;
  Seat& seat = seats_.emplace(lane, std::move(fresh)).first->second;
  try {
    seat.feed = std::make_unique<LaneFeed>(
        settings_.shape, std::move(*device), slabs,
        [this, &seat](const wp::HandedBatch& batch, Bytes slab) { hand(seat, batch, slab); });
  } catch (...) {
    lanes_.lost(lane, now);
    unseat(seats_.find(lane));
    throw;
  }
  wp::Welcome welcome;
  welcome.slots = settings_.shape.slots;
  welcome.rows = settings_.shape.rows;
  welcome.width = settings_.shape.width;
  welcome.frames = settings_.frames;
  welcome.frames.element = element;
  welcome.chunk = settings_.chunk;
  welcome.slabs = slabs;
  welcome.slab_bytes = seat.feed->ring().slab_bytes();
  link.send(encoder_.encode(welcome), seat.feed->ring().descriptor());
  announce_company();
  settings_.log("worker attached", seat.name, "");
  settle(now);
}

void Hub::refuse(WorkerConnection& link, std::string_view code, std::string message) {
  link.send(encoder_.encode(wp::Refused{std::string(code), std::move(message)}));
  link.end();
}

Hub::Seat* Hub::seat_of(const WorkerConnection& link) {
  for (auto& [lane, seat] : seats_)
    if (seat.link == &link) return &seat;
  return nullptr;
}

void Hub::receive(WorkerConnection& link, wp::ToService message) {
  Seat* seat = seat_of(link);
  if (!seat) return;  // a watcher's heartbeat
  const Time now = Clock::now();
  lanes_.heard(seat->lane, now);
  if (auto* done = std::get_if<wp::Done>(&message)) return this->done(*seat, std::move(*done));
  if (std::holds_alternative<wp::Bye>(message)) {
    settings_.log("worker leaves", seat->name, "it said Bye");
    lanes_.bye(seat->lane, now);
    settle(now);
  } else if (std::holds_alternative<wp::Hello>(message)) {
    protocol_error(link, "a second Hello");
  }
}

void Hub::done(Seat& seat, wp::Done done) {
  const Time now = Clock::now();
  switch (lanes_.done(seat.lane, done.batch, done.answers, done.mark_answers, now)) {
    case Lanes::Given::wrong:
      return protocol_error(*seat.link,
                            "a batch done that is not its oldest, or another number of answers");
    case Lanes::Given::repeated: stats_.results[ResultStatus::late].add(); return;
    case Lanes::Given::taken: break;
  }
  Instants at;
  at.copied = seat.feed->finish();
  // The worker's clock is ours, but its word is not.
  at.taken = std::clamp(done.taken, at.copied, now);
  at.done = std::clamp(done.done, at.taken, now);
  stats_.compute.observe(at.done - at.taken);
  seat.idle = now;
  tell(at);
  settle(now);
}

void Hub::lost(WorkerConnection& link, WorkerFailure why) {
  if (std::erase(watchers_, &link) > 0) return;
  Seat* seat = seat_of(link);
  if (!seat) return;
  const Time now = Clock::now();
  settings_.log("worker lost", seat->name, name_of(why));
  stats_.failures[why].add();
  lanes_.lost(seat->lane, now);
  unseat(seats_.find(seat->lane));
  settle(now);
}

void Hub::protocol_error(WorkerConnection& link, std::string_view what) {
  const Seat* seat = seat_of(link);
  settings_.log("worker broke the protocol", seat ? seat->name : "", what);
  refuse(link, "protocol", std::string(what));
  lost(link, WorkerFailure::protocol);
}

void Hub::unseat(std::map<LaneId, Seat>::iterator seat) {
  slab_bytes_.give_back(seat->second.slab_bytes);
  seats_.erase(seat);
  announce_company();
}

// Each worker and watcher hears how many others take batches. Of those that leave for each other
// the first stays: it does not hear of the later ones.
void Hub::announce_company() {
  for (auto& [lane, seat] : seats_) {
    std::uint32_t others = 0;
    for (const auto& [other_lane, other] : seats_)
      others += other_lane < lane || (other_lane != lane && !(seat.alone && other.alone));
    seat.link->send(encoder_.encode(wp::Company{others}));
  }
  for (WorkerConnection* watcher : watchers_)
    watcher->send(encoder_.encode(wp::Company{static_cast<std::uint32_t>(seats_.size())}));
}

void Hub::drain() {
  lanes_.drain();
  settle(Clock::now());
}

void Hub::dismiss() {
  for (auto& [lane, seat] : seats_) {
    seat.link->send(encoder_.encode(wp::Bye{}));
    seat.link->end();
    slab_bytes_.give_back(seat.slab_bytes);
    lanes_.lost(lane, Clock::now());
  }
  for (WorkerConnection* watcher : watchers_) {
    watcher->send(encoder_.encode(wp::Bye{}));
    watcher->end();
  }
  seats_.clear();
  watchers_.clear();
  timer_.cancel();
}

void Hub::settle(Time now) {
  for (auto& [lane, seat] : seats_) serve(seat, now);
  tell({.arrived = {},
        .ready = {},
        .closed = {},
        .copied = now,
        .taken = now,
        .done = now,
        .written = {}});
  LaneEvents& events = lanes_.events();
  for (LaneId lane : events.overdue) {
    const auto seat = seats_.find(lane);
    settings_.log("worker lost", seat->second.name, "timeout");
    stats_.failures[WorkerFailure::timeout].add();
    seat->second.link->end();
    unseat(seat);
  }
  for (LaneId lane : events.left) {
    const auto seat = seats_.find(lane);
    seat->second.link->send(encoder_.encode(wp::Bye{}));
    seat->second.link->end();
    unseat(seat);
  }
  const bool again = !events.overdue.empty() || !events.left.empty();
  events.clear();
  if (again) return settle(now);
  room_.set_limit(lanes_.capacity());
  publish();
  set_timer();
}

void Hub::serve(Seat& seat, Time now) {
  while (Batch* batch = lanes_.next(seat.lane, now)) {
    if (seat.idle) stats_.wait.observe(now - *std::exchange(seat.idle, std::nullopt));
    stats_.batch.count(*batch, settings_.shape.rows, settings_.shape.width);
    seat.feed->write(*batch, opened());
  }
}

std::vector<wp::OpenedStream> Hub::opened() const {
  std::vector<wp::OpenedStream> opened;
  for (const BatchRow* row : lanes_.opened()) {
    const StreamIntro& intro = streams_.at(row->stream);
    opened.push_back({row->stream, number(row->slot), intro.name, intro.options});
  }
  return opened;
}

void Hub::hand(Seat& seat, const wp::HandedBatch& batch, Bytes slab) {
  seat.link->send(encoder_.encode(batch));
  if (!watchers_.empty()) copy_to_watchers(batch, slab);
}

void Hub::copy_to_watchers(const wp::HandedBatch& batch, Bytes slab) {
  wp::HandedBatch copy = batch;
  const RowFormat& format = settings_.shape.format;
  copy.tensor =
      slab.first(std::size_t{batch.rows} * batch.width * format.values * size_of(format.dtype));
  const Bytes message = encoder_.encode(copy);
  for (WorkerConnection* watcher : watchers_) {
    if (watcher->unsent() + message.size() <= watcher_backlog)
      watcher->send(message);
    else
      stats_.unwatched.add();
  }
}

// Tells the streams' threads what became of their rows. `at` holds for the rows done by the one
// call since the last time.
void Hub::tell(const Instants& at) {
  LaneEvents& events = lanes_.events();
  for (StreamId id : events.taken)
    streams_.at(id).returns->put({.stream = id,
                                  .what = Returned::What::taken,
                                  .row = {},
                                  .answer = {},
                                  .at = {},
                                  .code = {}});
  for (LaneEvents::Done& done : events.done) {
    if (done.answer.kind == Answer::Kind::error)
      stats_.results[ResultStatus::error].add();
    else if (done.answer.kind != Answer::Kind::none)
      stats_.results[ResultStatus::ok].add();
    Instants row_at = at;
    row_at.arrived = done.row.arrived;
    row_at.ready = done.row.ready;
    row_at.closed = done.closed;
    streams_.at(done.stream)
        .returns->put({.stream = done.stream,
                       .what = Returned::What::done,
                       .row = done.row.row,
                       .answer = std::move(done.answer),
                       .at = row_at,
                       .code = {}});
  }
  for (const LaneEvents::Dropped& dropped : events.dropped)
    streams_.at(dropped.stream)
        .returns->put({.stream = dropped.stream,
                       .what = Returned::What::dropped,
                       .row = {},
                       .answer = {},
                       .at = {},
                       .code = dropped.code});
  for (StreamId id : events.gone) {
    streams_.erase(id);
    room_.give_back(1);
  }
  events.taken.clear();
  events.done.clear();
  events.dropped.clear();
  events.gone.clear();
}

void Hub::publish() {
  std::size_t waiting = 0, handed = 0;
  std::int64_t batches = 0;
  Time oldest = Time::max();
  for (const auto& [id, lane] : lanes_.lanes()) {
    waiting += lane.batcher().waiting();
    batches += static_cast<std::int64_t>(lane.held().size());
    for (const Batch& batch : lane.held()) {
      handed += batch.framed.size() + batch.marks.size();
      oldest = std::min(oldest, batch.closed);
    }
  }
  stats_.workers.set(static_cast<std::int64_t>(seats_.size()));
  stats_.in_flight.set(batches);
  stats_.oldest.set(batches > 0 ? to_wire(oldest) : 0);
  stats_.items[Stage::batch].set(static_cast<std::int64_t>(waiting));
  stats_.items[Stage::compute].set(static_cast<std::int64_t>(handed));
}

void Hub::set_timer() {
  Time due = lanes_.deadline();
  if (!seats_.empty() || !watchers_.empty()) due = std::min(due, next_beat_);
  if (due >= timer_at_) return;  // it fires earlier and is set again then
  timer_at_ = due;
  timer_.expires_at(due);
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) on_timer();
  });
}

void Hub::on_timer() {
  const Time now = Clock::now(), was_due = std::exchange(timer_at_, Time::max());
  if (now - was_due > stall) lanes_.pardon(now);
  if (now >= next_beat_) beat(now);
  lanes_.expire(now);
  settle(now);
}

void Hub::beat(Time now) {
  next_beat_ = now + wp::Heartbeats{}.interval;
  const Bytes heartbeat = encoder_.encode(wp::Heartbeat{});
  for (auto& [lane, seat] : seats_) seat.link->send(heartbeat);
  for (WorkerConnection* watcher : watchers_) watcher->send(heartbeat);
}

}  // namespace millrace
