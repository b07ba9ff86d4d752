// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/attached_workers.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace millrace {

namespace wp = worker_protocol;

AttachedWorkers::AttachedWorkers(WelcomeSettings settings, SlabSupply supply, LaneStats& stats,
                                 Calls calls)
    : settings_(std::move(settings)),
      stats_(stats),
      stream_name_(std::move(calls.stream_name)),
      maker_(settings_.shape, supply, stats, std::move(calls.slabs)) {}

std::optional<wp::Refused> AttachedWorkers::prepare(WorkerConnection& link,
                                                    const wp::Hello& hello) try {
  SlabOrder order{.number = next_order_++, .device = hello.device, .credits = hello.credits};
  NewWorker worker{.link = &link,
                   .name = hello.name,
                   .credits = hello.credits,
                   .alone = hello.alone,
                   .process = link.process(processes_),
                   .cancelled = order.cancelled};
  order.here = worker.process != nullptr;
  const auto at = new_workers_.emplace(order.number, std::move(worker)).first;
  try {
    maker_.make(std::move(order));
  } catch (const std::exception&) {
    new_workers_.erase(at);
    throw;
  }
  return std::nullopt;
} catch (const std::exception& error) {
  return wp::Refused{"internal", std::string("no slabs: ") + error.what()};
}

std::optional<NewWorker> AttachedWorkers::arrive(const MadeSlabs& made) {
  maker_.note(made);
  auto worker = new_workers_.extract(made.order);
  if (!worker) return std::nullopt;
  return std::move(worker.mapped());
}

const DeviceLost* AttachedWorkers::lost_meanwhile(const WorkerSlabs& slabs) const {
  for (const SlabReport& report : lost_meanwhile_) {
    const auto& lost = std::get<DeviceLost>(report.what);
    if (lost.goes_on ? report.slabs == slabs.notes().number
                     : slabs.device().place() == report.device)
      return &lost;
  }
  return nullptr;
}

void AttachedWorkers::attach(LaneId lane, const NewWorker& fresh, std::unique_ptr<WorkerSlabs> made,
                             Time now) {
  AttachedWorker& worker = workers_[lane];
  worker.link = fresh.link;
  worker.name = fresh.name;
  worker.process = fresh.process;
  worker.alone = fresh.alone;
  worker.slabs = std::move(made);
  worker.attached = now;
  worker.idle = now;
  by_link_[worker.link] = lane;
  by_slabs_[worker.slabs->notes().number] = lane;
  WorkerSlabs& slabs = *worker.slabs;
  wp::Welcome message = welcome();
  if (worker.process) {
    message.slabs = slabs.ring().slabs();
    message.slab_bytes = slabs.ring().slab_bytes();
    if (slabs.format().bare) message.slab_element = slabs.format().dtype;
    if (const DeviceHandles* handles = slabs.device_slabs().handles()) message.device = *handles;
  }
  worker.link->send(encoder_.encode(message), worker.process ? slabs.ring().descriptor() : -1);
  slabs.close_descriptor();
  show_slabs(worker);
  announce_company();
}

const NewWorker* AttachedWorkers::find_new_worker(const WorkerConnection& link) const {
  const auto of_link = [&](const auto& entry) { return entry.second.link == &link; };
  const auto found = std::ranges::find_if(new_workers_, of_link);
  return found == new_workers_.end() ? nullptr : &found->second;
}

void AttachedWorkers::remove_new_worker(const WorkerConnection& link) {
  std::erase_if(new_workers_, [&](const auto& entry) {
    const NewWorker& worker = entry.second;
    if (worker.link != &link) return false;
    *worker.cancelled = true;
    return true;
  });
}

void AttachedWorkers::leave(LaneId lane) {
  workers_.at(lane).leaving = true;
  announce_company();
}

void AttachedWorkers::watch(WorkerConnection& link, const wp::Hello& hello, Time now) {
  watchers_.push_back({&link, hello.name, now});
  link.send(encoder_.encode(welcome()));
  announce_company();
}

void AttachedWorkers::refuse(WorkerConnection& link, const wp::Refused& why) {
  link.send(encoder_.encode(why));
  link.end();
}

std::optional<LaneId> AttachedWorkers::take(const SlabReport& report) {
  maker_.count(report);
  if (new_workers_.empty())
    lost_meanwhile_.clear();
  else if (std::holds_alternative<DeviceLost>(report.what))
    lost_meanwhile_.push_back(report);
  const auto lane = by_slabs_.find(report.slabs);
  if (lane == by_slabs_.end() || std::holds_alternative<DeviceLost>(report.what))
    return std::nullopt;
  AttachedWorker& worker = workers_.at(lane->second);
  WorkerSlabs& slabs = *worker.slabs;
  if (const auto* copy = std::get_if<CopyEnded>(&report.what)) {
    if (!slabs.ended(*copy)) return std::nullopt;
  } else if (const auto* free = std::get_if<SlabFreed>(&report.what)) {
    slabs.freed(free->slab);
  } else {
    slabs.former_slabs_gone();
    if (!slabs.has_slab()) return std::nullopt;
  }
  show_slabs(worker);
  return lane->second;
}

bool AttachedWorkers::leave_copies_to_worker(LaneId lane, const std::string& why) {
  WorkerSlabs& slabs = *workers_.at(lane).slabs;
  const auto before = slabs.notes().number;
  if (!maker_.leave_copies_to_worker(slabs, why)) return false;
  by_slabs_.erase(before);
  by_slabs_[slabs.notes().number] = lane;
  show_slabs(workers_.at(lane));
  return true;
}

SlabsShown AttachedWorkers::slabs_of(const WorkerSlabs& slabs) {
  const SlabRing& ring = slabs.ring();
  const auto slab = static_cast<std::int64_t>(ring.slab_bytes());
  SlabsShown shown;
  if (slabs.notes().pageable) shown.pageable = slab * ring.slabs();
  if (!slabs.device().place()) return shown;
  shown.used = slab * ring.used();
  shown.free = slab * (ring.slabs() - ring.used());
  return shown;
}

void AttachedWorkers::show_slabs(AttachedWorker& worker, const SlabsShown& now) {
  stats_.slabs.used.add(now.used - worker.shown.used);
  stats_.slabs.free.add(now.free - worker.shown.free);
  stats_.slabs.pageable.add(now.pageable - worker.shown.pageable);
  worker.shown = now;
}

void AttachedWorkers::remove(LaneId lane) {
  const auto gone = unseat(lane);
  AttachedWorker& worker = gone.mapped();
  if (worker.process)
    lost_.keep(std::move(worker.slabs), std::move(worker.process));
  else
    maker_.free(std::move(worker.slabs));
}

AttachedWorkers::Workers::node_type AttachedWorkers::unseat(LaneId lane) {
  auto gone = workers_.extract(lane);
  AttachedWorker& worker = gone.mapped();
  by_link_.erase(worker.link);
  by_slabs_.erase(worker.slabs->notes().number);
  show_slabs(worker, {});
  announce_company();
  return gone;
}

void AttachedWorkers::remove_watcher(const WorkerConnection& link) {
  std::erase_if(watchers_, [&](const Watcher& watcher) { return watcher.link == &link; });
}

void AttachedWorkers::dismiss(LaneId lane) {
  const auto gone = unseat(lane);
  AttachedWorker& worker = gone.mapped();
  // Memory of a device must not be freed while another process has it open. Other slabs are freed
  // before those of the same worker are made again: one thread does both.
  if (worker.slabs->device_slabs().handles())
    lost_.keep(std::move(worker.slabs), std::move(worker.process));
  else
    maker_.free(std::move(worker.slabs));
  say_bye(*worker.link);
}

void AttachedWorkers::say_bye(WorkerConnection& link) {
  link.send(encoder_.encode(wp::Bye{}));
  link.end();
}

void AttachedWorkers::dismiss_watcher(WorkerConnection& link) {
  say_bye(link);
  remove_watcher(link);
}

void AttachedWorkers::dismiss_all() {
  while (!workers_.empty()) dismiss(workers_.begin()->first);
  while (!watchers_.empty()) dismiss_watcher(*watchers_.front().link);
  while (!new_workers_.empty()) {
    WorkerConnection& link = *new_workers_.begin()->second.link;
    remove_new_worker(link);
    refuse(link, {"stopping", "the service is stopping"});
  }
}

AttachedWorker* AttachedWorkers::find(LaneId lane) {
  const auto worker = workers_.find(lane);
  return worker == workers_.end() ? nullptr : &worker->second;
}

std::optional<LaneId> AttachedWorkers::lane_of(const WorkerConnection& link) const {
  const auto lane = by_link_.find(&link);
  return lane == by_link_.end() ? std::nullopt : std::optional(lane->second);
}

std::string_view AttachedWorkers::name_of(const WorkerConnection& link) {
  if (const auto lane = lane_of(link)) return workers_.at(*lane).name;
  if (const NewWorker* worker = find_new_worker(link)) return worker->name;
  const Watcher* watcher = find_watcher(link);
  return watcher ? watcher->name : std::string_view();
}

Watcher* AttachedWorkers::find_watcher(const WorkerConnection& link) {
  const auto watcher = std::ranges::find(watchers_, &link, &Watcher::link);
  return watcher == watchers_.end() ? nullptr : &*watcher;
}

Watcher* AttachedWorkers::quietest_watcher() {
  const auto watcher = std::ranges::min_element(watchers_, {}, &Watcher::heard);
  return watcher == watchers_.end() ? nullptr : &*watcher;
}

void AttachedWorkers::shift_watchers(Duration late, Time now) {
  for (Watcher& watcher : watchers_) watcher.heard = std::min(watcher.heard + late, now);
}

}  // namespace millrace
