// SPDX-License-Identifier: Apache-2.0
#include "workers/seats.h"

#include <algorithm>
#include <exception>
#include <unordered_set>
#include <utility>

#include "workers/protocol.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

// A watcher that is further behind misses batches.
constexpr std::size_t watcher_backlog = std::size_t{4} << 20;

}  // namespace

Seats::Seats(SeatSettings settings, SlabSupply supply, LaneStats& stats, Calls calls)
    : settings_(std::move(settings)),
      stats_(stats),
      stream_name_(std::move(calls.stream_name)),
      feeds_(settings_.shape, supply, stats, std::move(calls.report)) {}

Result<Seat, wp::Refused> Seats::prepare(WorkerConnection& link, const wp::Hello& hello,
                                         const std::optional<DeviceFailure>& no_device,
                                         Time now) try {
  Seat seat;
  seat.link = &link;
  seat.name = hello.name;
  seat.idle = now;
  seat.alone = hello.alone;
  seat.process = link.process();
  auto feed = feeds_.make(hello, no_device, seat.process != nullptr,
                          [this, &link](const wp::HandedBatch& batch, Bytes slab) {
                            hand(*find(*lane_of(link)), batch, slab);
                          });
  if (!feed) return feed.error();
  seat.feed = std::move(*feed);
  return seat;
} catch (const std::exception& error) {
  return wp::Refused{"internal", std::string("no slabs: ") + error.what()};
}

void Seats::seat(LaneId lane, Seat fresh) {
  const Seat& seat = seats_.emplace(lane, std::move(fresh)).first->second;
  const LaneFeed& feed = *seat.feed.lane;
  wp::Welcome message = welcome();
  if (seat.process) {
    message.slabs = feed.ring().slabs();
    message.slab_bytes = feed.ring().slab_bytes();
    if (feed.format().bare) message.slab_element = feed.format().dtype;
    if (const DeviceHandles* handles = feed.device_slabs().handles()) message.device = *handles;
  }
  seat.link->send(encoder_.encode(message), seat.process ? feed.ring().descriptor() : -1);
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
  welcome.context = format().context;
  welcome.repeat = format().repeat;
  return welcome;
}

void Seats::refuse(WorkerConnection& link, const wp::Refused& why) {
  link.send(encoder_.encode(why));
  link.end();
}

bool Seats::take(const FeedReport& report) {
  feeds_.count(report);
  for (auto& [lane, seat] : seats_) {
    if (seat.feed.number != report.feed) continue;
    if (const auto* copy = std::get_if<CopyEnded>(&report.what))
      return seat.feed.lane->ended(*copy);
    if (const auto* free = std::get_if<SlabFreed>(&report.what)) {
      seat.feed.lane->freed(free->slab);
      return true;
    }
  }
  return false;
}

void Seats::show_slabs() const {
  std::int64_t used = 0, free = 0, pageable = 0;
  for (const auto& [lane, seat] : seats_) {
    const SlabRing& ring = seat.feed.lane->ring();
    const auto slab = static_cast<std::int64_t>(ring.slab_bytes());
    if (seat.feed.pageable) pageable += slab * ring.slabs();
    if (!seat.feed.lane->device().place()) continue;
    used += slab * ring.used();
    free += slab * (ring.slabs() - ring.used());
  }
  stats_.slabs.used.set(used);
  stats_.slabs.free.set(free);
  stats_.slabs.pageable.set(pageable);
}

void Seats::remove(LaneId lane) {
  Seat seat = unseat(lane);
  if (seat.process)
    lost_.keep(std::move(seat.feed.lane), std::move(seat.feed.bytes), std::move(seat.process));
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
  Seat seat = unseat(lane);
  WorkerConnection& link = *seat.link;
  // Memory of a device is not to be freed while somebody has it open.
  if (seat.feed.lane->device_slabs().handles())
    lost_.keep(std::move(seat.feed.lane), std::move(seat.feed.bytes), std::move(seat.process));
  seat = {};  // its slabs are free before it hears of it
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

void Seats::shift_watchers(Duration late, Time now) {
  for (Watcher& watcher : watchers_) watcher.heard = std::min(watcher.heard + late, now);
}

// Who computes elsewhere gets the tensor that a device would make of bare rows.
Bytes Seats::tensor_of(const wp::HandedBatch& batch, Bytes slab, const RowFormat& as) {
  const std::size_t bytes =
      std::size_t{batch.rows} * batch.width * format().values * size_of(format().dtype);
  if (!as.bare) return slab.first(bytes);
  windows_.clear();
  for (const wp::RowEntry& row : batch.framed) windows_.push_back({row.left, row.size, row.right});
  expanded_.resize(bytes);
  expand_rows(format(), slab, windows_, batch.width, expanded_);
  return expanded_;
}

void Seats::hand(Seat& seat, const wp::HandedBatch& batch, Bytes slab) {
  const RowFormat& as = seat.feed.lane->format();
  const bool sends = !seat.process;
  seat.link->send(encoder_.encode(batch, sends ? tensor_of(batch, slab, as) : Bytes()));
  if (!watchers_.empty()) copy_to_watchers(batch, tensor_of(batch, slab, as));
}

void Seats::copy_to_watchers(const wp::HandedBatch& batch, Bytes tensor) {
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
  const Bytes message = encoder_.encode(copy, tensor);
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
