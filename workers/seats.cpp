// SPDX-License-Identifier: Apache-2.0
#include "workers/seats.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace millrace {

namespace wp = worker_protocol;

Seats::Seats(SeatSettings settings, SlabSupply supply, LaneStats& stats, Calls calls)
    : settings_(std::move(settings)),
      stats_(stats),
      stream_name_(std::move(calls.stream_name)),
      feeds_(settings_.shape, supply, stats, std::move(calls.feeds)) {}

std::optional<wp::Refused> Seats::prepare(WorkerConnection& link, const wp::Hello& hello) try {
  FeedOrder order{.number = next_order_++, .device = hello.device, .credits = hello.credits};
  NewWorker worker{.link = &link,
                   .name = hello.name,
                   .credits = hello.credits,
                   .alone = hello.alone,
                   .process = link.process(processes_),
                   .cancelled = order.cancelled};
  order.here = worker.process != nullptr;
  const auto at = new_workers_.emplace(order.number, std::move(worker)).first;
  try {
    feeds_.make(std::move(order));
  } catch (const std::exception&) {
    new_workers_.erase(at);
    throw;
  }
  return std::nullopt;
} catch (const std::exception& error) {
  return wp::Refused{"internal", std::string("no slabs: ") + error.what()};
}

std::optional<NewWorker> Seats::arrive(const MadeFeed& made) {
  feeds_.note(made);
  auto worker = new_workers_.extract(made.order);
  if (!worker) return std::nullopt;
  return std::move(worker.mapped());
}

const DeviceLost* Seats::lost_meanwhile(const Feed& feed) const {
  for (const FeedReport& report : lost_meanwhile_) {
    const auto& lost = std::get<DeviceLost>(report.what);
    if (lost.goes_on ? report.feed == feed.number : feed.lane->device().place() == report.device)
      return &lost;
  }
  return nullptr;
}

void Seats::seat(LaneId lane, Seat fresh) {
  Seat& seat = seats_.emplace(lane, std::move(fresh)).first->second;
  by_link_[seat.link] = lane;
  by_feed_[seat.feed.number] = lane;
  LaneFeed& feed = *seat.feed.lane;
  wp::Welcome message = welcome();
  if (seat.process) {
    message.slabs = feed.ring().slabs();
    message.slab_bytes = feed.ring().slab_bytes();
    if (feed.format().bare) message.slab_element = feed.format().dtype;
    if (const DeviceHandles* handles = feed.device_slabs().handles()) message.device = *handles;
  }
  seat.link->send(encoder_.encode(message), seat.process ? feed.ring().descriptor() : -1);
  feed.close_descriptor();
  show_slabs(seat);
  announce_company();
}

const NewWorker* Seats::find_new_worker(const WorkerConnection& link) const {
  const auto of_link = [&](const auto& entry) { return entry.second.link == &link; };
  const auto found = std::ranges::find_if(new_workers_, of_link);
  return found == new_workers_.end() ? nullptr : &found->second;
}

void Seats::remove_new_worker(const WorkerConnection& link) {
  std::erase_if(new_workers_, [&](const auto& entry) {
    const NewWorker& worker = entry.second;
    if (worker.link != &link) return false;
    *worker.cancelled = true;
    return true;
  });
}

void Seats::leave(LaneId lane) {
  seats_.at(lane).leaving = true;
  announce_company();
}

void Seats::watch(WorkerConnection& link, const wp::Hello& hello, Time now) {
  watchers_.push_back({&link, hello.name, now});
  link.send(encoder_.encode(welcome()));
  announce_company();
}

void Seats::refuse(WorkerConnection& link, const wp::Refused& why) {
  link.send(encoder_.encode(why));
  link.end();
}

std::optional<LaneId> Seats::take(const FeedReport& report) {
  feeds_.count(report);
  if (new_workers_.empty())
    lost_meanwhile_.clear();
  else if (std::holds_alternative<DeviceLost>(report.what))
    lost_meanwhile_.push_back(report);
  const auto lane = by_feed_.find(report.feed);
  if (lane == by_feed_.end() || std::holds_alternative<DeviceLost>(report.what))
    return std::nullopt;
  Seat& seat = seats_.at(lane->second);
  LaneFeed& feed = *seat.feed.lane;
  if (const auto* copy = std::get_if<CopyEnded>(&report.what)) {
    if (!feed.ended(*copy)) return std::nullopt;
  } else if (const auto* free = std::get_if<SlabFreed>(&report.what)) {
    feed.freed(free->slab);
  } else {
    feed.former_slabs_gone();
    if (!feed.has_slab()) return std::nullopt;
  }
  show_slabs(seat);
  return lane->second;
}

bool Seats::leave_copies_to_worker(LaneId lane, const std::string& why) {
  Feed& feed = seats_.at(lane).feed;
  const auto before = feed.number;
  if (!feeds_.leave_copies_to_worker(feed, why)) return false;
  by_feed_.erase(before);
  by_feed_[feed.number] = lane;
  show_slabs(seats_.at(lane));
  return true;
}

SlabsShown Seats::slabs_of(const Feed& feed) {
  const SlabRing& ring = feed.lane->ring();
  const auto slab = static_cast<std::int64_t>(ring.slab_bytes());
  SlabsShown slabs;
  if (feed.pageable) slabs.pageable = slab * ring.slabs();
  if (!feed.lane->device().place()) return slabs;
  slabs.used = slab * ring.used();
  slabs.free = slab * (ring.slabs() - ring.used());
  return slabs;
}

void Seats::show_slabs(Seat& seat, const SlabsShown& now) {
  stats_.slabs.used.add(now.used - seat.shown.used);
  stats_.slabs.free.add(now.free - seat.shown.free);
  stats_.slabs.pageable.add(now.pageable - seat.shown.pageable);
  seat.shown = now;
}

void Seats::remove(LaneId lane) {
  Seat seat = unseat(lane);
  if (seat.process)
    lost_.keep(std::move(seat.feed), std::move(seat.process));
  else
    feeds_.free(std::move(seat.feed));
}

Seat Seats::unseat(LaneId lane) {
  Seat seat = std::move(seats_.extract(lane).mapped());
  by_link_.erase(seat.link);
  by_feed_.erase(seat.feed.number);
  show_slabs(seat, {});
  announce_company();
  return seat;
}

void Seats::remove_watcher(const WorkerConnection& link) {
  std::erase_if(watchers_, [&](const Watcher& watcher) { return watcher.link == &link; });
}

void Seats::dismiss(LaneId lane) {
  Seat seat = unseat(lane);
  WorkerConnection& link = *seat.link;
  // Memory of a device must not be freed while another process has it open. Other slabs are freed
  // before those of the same worker are made again: one thread does both.
  if (seat.feed.lane->device_slabs().handles())
    lost_.keep(std::move(seat.feed), std::move(seat.process));
  else
    feeds_.free(std::move(seat.feed));
  say_bye(link);
}

void Seats::say_bye(WorkerConnection& link) {
  link.send(encoder_.encode(wp::Bye{}));
  link.end();
}

void Seats::dismiss_watcher(WorkerConnection& link) {
  say_bye(link);
  remove_watcher(link);
}

void Seats::dismiss_all() {
  while (!seats_.empty()) dismiss(seats_.begin()->first);
  while (!watchers_.empty()) dismiss_watcher(*watchers_.front().link);
  while (!new_workers_.empty()) {
    WorkerConnection& link = *new_workers_.begin()->second.link;
    remove_new_worker(link);
    refuse(link, {"stopping", "the service is stopping"});
  }
}

Seat* Seats::find(LaneId lane) {
  const auto seat = seats_.find(lane);
  return seat == seats_.end() ? nullptr : &seat->second;
}

std::optional<LaneId> Seats::lane_of(const WorkerConnection& link) const {
  const auto lane = by_link_.find(&link);
  return lane == by_link_.end() ? std::nullopt : std::optional(lane->second);
}

std::string_view Seats::name_of(const WorkerConnection& link) {
  if (const auto lane = lane_of(link)) return seats_.at(*lane).name;
  if (const NewWorker* worker = find_new_worker(link)) return worker->name;
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

}  // namespace millrace
