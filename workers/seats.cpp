// SPDX-License-Identifier: Apache-2.0
#include "workers/seats.h"

#include <algorithm>
#include <exception>
#include <unordered_set>
#include <utility>

#include "gpu/device.h"
#include "workers/protocol.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

// A watcher that is further behind misses batches.
constexpr std::size_t watcher_backlog = std::size_t{4} << 20;

// Of a message with a batch, for its rows and names: far more than they need.
constexpr std::size_t room_beside_tensor = std::size_t{64} << 20;

}  // namespace

Seats::Seats(SeatSettings settings, Budget& slab_bytes, LaneStats& stats, StreamName stream_name)
    : settings_(std::move(settings)),
      slab_bytes_(slab_bytes),
      stats_(stats),
      stream_name_(std::move(stream_name)) {}

Result<Seat, wp::Refused> Seats::prepare(WorkerConnection& link, const wp::Hello& hello,
                                         Time now) try {
  Seat seat;
  seat.link = &link;
  seat.name = hello.name;
  seat.idle = now;
  seat.alone = hello.alone;
  seat.process = link.process();
  // A device of another machine is that worker's own affair.
  auto device = open_device(seat.process ? hello.device : "host");
  if (!device) return wp::Refused{"device", device.error().message};
  const std::size_t slab =
      SlabRing::slab_bytes_for(settings_.shape.slab_bytes((*device)->slab_element(format())));
  if (!seat.process && slab > wp::max_to_worker - room_beside_tensor)
    return wp::Refused{"no_room", "a batch may be too long for a message"};
  // One more than the worker may hold, so that the next batch is laid out while it computes; what
  // is sent lies in a message besides.
  const std::uint32_t slabs = hello.credits + 1, messages = seat.process ? 0 : hello.credits;
  seat.slab_bytes = Share(slab_bytes_, (std::uint64_t{slabs} + messages) * slab);
  if (!seat.slab_bytes)
    return wp::Refused{"no_room",
                       "the slabs of this worker would pass [limits] slab_bytes; those of a lost "
                       "worker count until its process has ended"};
  seat.feed = std::make_unique<LaneFeed>(
      settings_.shape, std::move(*device), slabs,
      [this, &link, sends = !seat.process](const wp::HandedBatch& batch, Bytes in) {
        hand(link, batch, in, sends);
      });
  return seat;
} catch (const std::exception& error) {
  return wp::Refused{"internal", std::string("no slabs: ") + error.what()};
}

void Seats::seat(LaneId lane, Seat fresh) {
  const Seat& seat = seats_.emplace(lane, std::move(fresh)).first->second;
  wp::Welcome message = welcome();
  if (seat.process) {
    message.slabs = seat.feed->ring().slabs();
    message.slab_bytes = seat.feed->ring().slab_bytes();
  }
  seat.link->send(encoder_.encode(message), seat.process ? seat.feed->ring().descriptor() : -1);
  announce_company();
}

void Seats::watch(WorkerConnection& link, const wp::Hello& hello, Time now) {
  watchers_.push_back({&link, hello.name, now});
  link.send(encoder_.encode(welcome()));
  announce_company();
}

wp::Welcome Seats::welcome() const {
  wp::Welcome welcome;
  welcome.slots = settings_.shape.slots;
  welcome.rows = settings_.shape.rows;
  welcome.width = settings_.shape.width;
  welcome.frames = settings_.frames;
  welcome.frames.element = settings_.shape.format.dtype;
  welcome.chunk = settings_.chunk;
  return welcome;
}

void Seats::refuse(WorkerConnection& link, const wp::Refused& why) {
  link.send(encoder_.encode(why));
  link.end();
}

void Seats::remove(LaneId lane) {
  Seat seat = unseat(lane);
  if (seat.process)
    lost_.keep(std::move(seat.feed), std::move(seat.slab_bytes), std::move(seat.process));
}

Seat Seats::unseat(LaneId lane) {
  Seat seat = std::move(seats_.extract(lane).mapped());
  announce_company();
  return seat;
}

void Seats::remove_watcher(const WorkerConnection& link) {
  std::erase_if(watchers_, [&](const Watcher& watcher) { return watcher.link == &link; });
}

void Seats::dismiss(LaneId lane) {
  WorkerConnection& link = *unseat(lane).link;  // its slabs are free before it hears of it
  link.send(encoder_.encode(wp::Bye{}));
  link.end();
}

void Seats::dismiss_watcher(WorkerConnection& link) {
  link.send(encoder_.encode(wp::Bye{}));
  link.end();
  remove_watcher(link);
}

void Seats::dismiss_all() {
  while (!seats_.empty()) dismiss(seats_.begin()->first);
  while (!watchers_.empty()) dismiss_watcher(*watchers_.front().link);
}

// What waits to be read says that we live as well as a heartbeat behind it, and does not grow.
void Seats::beat() {
  const Bytes heartbeat = encoder_.encode(wp::Heartbeat{});
  const auto beat = [&](WorkerConnection& link) {
    if (link.unsent() == 0) link.send(heartbeat);
  };
  for (auto& [lane, seat] : seats_) beat(*seat.link);
  for (const Watcher& watcher : watchers_) beat(*watcher.link);
}

Seat* Seats::find(LaneId lane) {
  const auto seat = seats_.find(lane);
  return seat == seats_.end() ? nullptr : &seat->second;
}

std::optional<LaneId> Seats::lane_of(const WorkerConnection& link) const {
  for (const auto& [lane, seat] : seats_)
    if (seat.link == &link) return lane;
  return std::nullopt;
}

std::string_view Seats::name_of(const WorkerConnection& link) {
  if (const auto lane = lane_of(link)) return seats_.at(*lane).name;
  const Watcher* watcher = find_watcher(link);
  return watcher ? watcher->name : std::string_view();
}

Watcher* Seats::find_watcher(const WorkerConnection& link) {
  const auto watcher = std::ranges::find(watchers_, &link, &Watcher::link);
  return watcher == watchers_.end() ? nullptr : &*watcher;
}

Watcher* Seats::quietest_watcher() {
  const auto watcher = std::ranges::min_element(watchers_, {}, &Watcher::heard);
  return watcher == watchers_.end() ? nullptr : &*watcher;
}

void Seats::pardon_watchers(Time now) {
  for (Watcher& watcher : watchers_) watcher.heard = now;
}

Bytes Seats::tensor_of(const wp::HandedBatch& batch, Bytes slab) const {
  return slab.first(std::size_t{batch.rows} * batch.width * format().values *
                    size_of(format().dtype));
}

void Seats::hand(WorkerConnection& link, const wp::HandedBatch& batch, Bytes slab, bool sends) {
  link.send(encoder_.encode(batch, sends ? tensor_of(batch, slab) : Bytes()));
  if (!watchers_.empty()) copy_to_watchers(batch, slab);
}

void Seats::copy_to_watchers(const wp::HandedBatch& batch, Bytes slab) {
  wp::HandedBatch copy = batch;
  // Which openings a watcher has missed nobody knows: it came later, or was slow.
  std::unordered_set<StreamId> named;
  for (const wp::OpenedStream& stream : batch.opened) named.insert(stream.stream);
  const auto name_rows = [&](const std::vector<wp::RowEntry>& rows) {
    for (const wp::RowEntry& row : rows)
      if (named.insert(row.stream).second)
        copy.opened.push_back({row.stream, row.slot, std::string(stream_name_(row.stream)), {}});
  };
  name_rows(batch.framed);
  name_rows(batch.marks);
  const Bytes message = encoder_.encode(copy, tensor_of(batch, slab));
  for (const Watcher& watcher : watchers_) {
    const std::size_t unsent = watcher.link->unsent();
    if (unsent == 0 || unsent + message.size() <= watcher_backlog)
      watcher.link->send(message);
    else
      stats_.unwatched.add();
  }
}

// Each worker and watcher hears how many others take batches. Of those that leave for each other
// the first stays: it does not hear of the later ones.
void Seats::announce_company() {
  for (auto& [lane, seat] : seats_) {
    std::uint32_t others = 0;
    for (const auto& [other_lane, other] : seats_)
      others += other_lane < lane || (other_lane != lane && !(seat.alone && other.alone));
    seat.link->send(encoder_.encode(wp::Company{others}));
  }
  for (const Watcher& watcher : watchers_)
    watcher.link->send(encoder_.encode(wp::Company{static_cast<std::uint32_t>(seats_.size())}));
}

}  // namespace millrace
