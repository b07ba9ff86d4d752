// SPDX-License-Identifier: Apache-2.0
#include "workers/seats.h"

#include <system_error>
#include <unordered_set>
#include <utility>

#include "gpu/device.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

// A watcher that is further behind misses batches.
constexpr std::size_t watcher_backlog = std::size_t{4} << 20;

}  // namespace

Seats::Seats(SeatSettings settings, Budget& slab_bytes, LaneStats& stats, NameOf name_of)
    : settings_(std::move(settings)),
      slab_bytes_(slab_bytes),
      stats_(stats),
      name_of_(std::move(name_of)) {}

Seats::~Seats() {
  for (const auto& [lane, seat] : seats_) slab_bytes_.give_back(seat.slab_bytes);
}

Result<Seat, wp::Refused> Seats::prepare(WorkerConnection& link, const wp::Hello& hello, Time now) {
  auto device = open_device(hello.device);
  if (!device) return wp::Refused{"device", device.error().message};
  // One more than the worker may hold, so that the next batch is laid out while it computes.
  const std::uint32_t slabs = hello.credits + 1;
  const Element element = (*device)->slab_element(settings_.shape.format);
  Seat seat;
  seat.link = &link;
  seat.name = hello.name;
  seat.slab_bytes = slabs * SlabRing::slab_bytes_for(settings_.shape.slab_bytes(element));
  seat.idle = now;
  seat.alone = hello.alone;
  if (!slab_bytes_.try_take(seat.slab_bytes))
    return wp::Refused{"no_room", "the slabs of this worker would pass [limits] slab_bytes"};
  try {
    seat.feed = std::make_unique<LaneFeed>(
        settings_.shape, std::move(*device), slabs,
        [this, &link](const wp::HandedBatch& batch, Bytes slab) { hand(link, batch, slab); });
  } catch (const std::system_error& error) {
    slab_bytes_.give_back(seat.slab_bytes);
    return wp::Refused{"internal", std::string("no slabs: ") + error.what()};
  }
  return seat;
}

void Seats::seat(LaneId lane, Seat fresh) {
  const Seat& seat = seats_.emplace(lane, std::move(fresh)).first->second;
  wp::Welcome message = welcome();
  message.slabs = seat.feed->ring().slabs();
  message.slab_bytes = seat.feed->ring().slab_bytes();
  seat.link->send(encoder_.encode(message), seat.feed->ring().descriptor());
  announce_company();
}

void Seats::watch(WorkerConnection& link) {
  watchers_.push_back(&link);
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
  const auto seat = seats_.find(lane);
  slab_bytes_.give_back(seat->second.slab_bytes);
  seats_.erase(seat);
  announce_company();
}

bool Seats::remove_watcher(const WorkerConnection& link) {
  return std::erase(watchers_, &link) > 0;
}

void Seats::dismiss(LaneId lane) {
  WorkerConnection& link = *seats_.at(lane).link;
  link.send(encoder_.encode(wp::Bye{}));
  link.end();
  remove(lane);
}

void Seats::dismiss_all() {
  while (!seats_.empty()) dismiss(seats_.begin()->first);
  for (WorkerConnection* watcher : std::exchange(watchers_, {})) {
    watcher->send(encoder_.encode(wp::Bye{}));
    watcher->end();
  }
}

void Seats::beat() {
  const Bytes heartbeat = encoder_.encode(wp::Heartbeat{});
  for (auto& [lane, seat] : seats_) seat.link->send(heartbeat);
  for (WorkerConnection* watcher : watchers_) watcher->send(heartbeat);
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

void Seats::hand(WorkerConnection& link, const wp::HandedBatch& batch, Bytes slab) {
  link.send(encoder_.encode(batch));
  if (!watchers_.empty()) copy_to_watchers(batch, slab);
}

void Seats::copy_to_watchers(const wp::HandedBatch& batch, Bytes slab) {
  wp::HandedBatch copy = batch;
  const RowFormat& format = settings_.shape.format;
  copy.tensor =
      slab.first(std::size_t{batch.rows} * batch.width * format.values * size_of(format.dtype));
  // Which openings a watcher has missed nobody knows: it came later, or was slow.
  std::unordered_set<StreamId> named;
  for (const wp::OpenedStream& stream : batch.opened) named.insert(stream.stream);
  const auto name_rows = [&](const std::vector<wp::RowEntry>& rows) {
    for (const wp::RowEntry& row : rows)
      if (named.insert(row.stream).second)
        copy.opened.push_back({row.stream, row.slot, std::string(name_of_(row.stream)), {}});
  };
  name_rows(batch.framed);
  name_rows(batch.marks);
  const Bytes message = encoder_.encode(copy);
  for (WorkerConnection* watcher : watchers_) {
    const std::size_t unsent = watcher->unsent();
    if (unsent == 0 || unsent + message.size() <= watcher_backlog)
      watcher->send(message);
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
  for (WorkerConnection* watcher : watchers_)
    watcher->send(encoder_.encode(wp::Company{static_cast<std::uint32_t>(seats_.size())}));
}

}  // namespace millrace
