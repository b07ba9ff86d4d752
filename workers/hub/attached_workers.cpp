// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/attached_workers.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <variant>

namespace millrace {

namespace wp = worker_protocol;

namespace {

// A watcher that is further behind misses batches.
constexpr std::size_t watcher_backlog = std::size_t{4} << 20;

bool takes(const Watcher& watcher, std::size_t bytes) {
  const std::size_t unsent = watcher.link->unsent();
  return unsent == 0 || unsent + bytes <= watcher_backlog;
}

}  // namespace

AttachedWorkers::AttachedWorkers(WelcomeSettings settings, SlabMaker& maker, LaneStats& stats,
                                 StreamName stream_name)
    : settings_(std::move(settings)),
      maker_(maker),
      stats_(stats),
      stream_name_(std::move(stream_name)) {}

void AttachedWorkers::attach(LaneId lane, NewWorker fresh, std::unique_ptr<WorkerSlabs> made,
                             Time now) {
  AttachedWorker& worker = workers_[lane];
  worker.link = fresh.link;
  worker.name = std::move(fresh.name);
  worker.process = std::move(fresh.process);
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
  send_others(&AttachedPeer::announce);
}

void AttachedWorkers::add_watcher(WorkerConnection& link, const std::string& name, Time now) {
  watchers_.push_back({{&link, name}, now});
  link.send(encoder_.encode(welcome()));
  send_others(&AttachedPeer::announce);
}

void AttachedWorkers::remove_watcher(const WorkerConnection& link) {
  std::erase_if(watchers_, [&](const Watcher& watcher) { return watcher.link == &link; });
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

wp::Welcome AttachedWorkers::welcome() const {
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

void AttachedWorkers::leave(LaneId lane) {
  workers_.at(lane).leaving = true;
  send_others(&AttachedPeer::announce);
}

std::optional<LaneId> AttachedWorkers::take(const SlabReport& report) {
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

void AttachedWorkers::remove(LaneId lane, std::string_view why, Time now) {
  auto gone = take_out(lane);
  lost_workers_.add(gone.mapped().name, why, now);
  free(gone.mapped(), gone.mapped().process != nullptr);
}

// Memory of a device must not be freed while another process has it open. Other slabs are freed
// before those of the same worker are made again: one thread does both.
void AttachedWorkers::dismiss(LaneId lane) {
  auto gone = take_out(lane);
  free(gone.mapped(), gone.mapped().slabs->device_slabs().handles() != nullptr);
  gone.mapped().link->say_bye();
}

AttachedWorkers::Workers::node_type AttachedWorkers::take_out(LaneId lane) {
  auto gone = workers_.extract(lane);
  AttachedWorker& worker = gone.mapped();
  by_link_.erase(worker.link);
  by_slabs_.erase(worker.slabs->notes().number);
  show_slabs(worker, {});
  send_others(&AttachedPeer::announce);
  return gone;
}

void AttachedWorkers::free(AttachedWorker& worker, bool when_its_process_is_gone) {
  if (when_its_process_is_gone)
    lost_slabs_.keep(std::move(worker.slabs), std::move(worker.process));
  else
    maker_.free(std::move(worker.slabs));
}

void AttachedWorkers::dismiss_all() {
  while (!workers_.empty()) dismiss(workers_.begin()->first);
  for (const Watcher& watcher : std::exchange(watchers_, {})) watcher.link->say_bye();
}

AttachedWorker* AttachedWorkers::find(LaneId lane) {
  const auto worker = workers_.find(lane);
  return worker == workers_.end() ? nullptr : &worker->second;
}

std::optional<LaneId> AttachedWorkers::lane_of(const WorkerConnection& link) const {
  const auto lane = by_link_.find(&link);
  return lane == by_link_.end() ? std::nullopt : std::optional(lane->second);
}

std::vector<WorkerStatus> AttachedWorkers::status(const Lanes& lanes, Time now) const {
  std::vector<WorkerStatus> all;
  for (const auto& [id, worker] : workers_) {
    const auto lane = lanes.lanes().find(id);
    if (lane == lanes.lanes().end()) continue;
    WorkerStatus& status = all.emplace_back(status_of(lane->second, worker.compute, now));
    status.name = worker.name;
    status.remote = !worker.process;
    status.attached = now - worker.attached;
    if (const auto* lost = lost_workers_.find(worker.name))
      status.last_failure = {lost->why, now - lost->at};
  }
  return all;
}

std::size_t AttachedWorkers::tensor_bytes(const wp::HandedBatch& batch) const {
  return std::size_t{batch.rows} * batch.width * format().values * size_of(format().dtype);
}

// Workers on other machines and watchers get the tensor that a device would make of bare rows.
Bytes AttachedWorkers::tensor_of(const wp::HandedBatch& batch, Bytes slab, const RowFormat& as) {
  const std::size_t bytes = tensor_bytes(batch);
  if (!as.bare) return slab.first(bytes);
  windows_.clear();
  for (const wp::RowEntry& row : batch.framed) windows_.push_back({row.left, row.size, row.right});
  expanded_.resize(bytes);
  expand_rows(format(), slab, windows_, batch.width, expanded_);
  return expanded_;
}

void AttachedWorkers::hand(AttachedWorker& worker, const wp::HandedBatch& batch) {
  const WorkerSlabs& slabs = *worker.slabs;
  const Bytes slab = slabs.ring().slab(batch.slab);
  worker.link->send(
      encoder_.encode(batch, worker.process ? Bytes() : tensor_of(batch, slab, slabs.format())));
  if (watchers_.empty()) return;
  if (is_taken_by_watchers(tensor_bytes(batch)))
    copy_to_watchers(batch, tensor_of(batch, slab, slabs.format()));
  else
    stats_.unwatched.add(watchers_.size());
}

// Asked before a copy is made: it may be of hundreds of megabytes.
bool AttachedWorkers::is_taken_by_watchers(std::size_t tensor) const {
  return tensor <= max_sent_tensor && std::ranges::any_of(watchers_, [&](const Watcher& watcher) {
           return takes(watcher, tensor);
         });
}

void AttachedWorkers::copy_to_watchers(const wp::HandedBatch& batch, Bytes tensor) {
  wp::HandedBatch copy = batch;
  // A watcher may have missed the openings of streams: it came later, or was slow.
  std::unordered_set<StreamId> named;
  for (const wp::OpenedStream& stream : batch.opened) named.insert(stream.stream);
  for (const auto* rows : {&batch.framed, &batch.marks})
    for (const wp::RowEntry& row : *rows)
      if (named.insert(row.stream).second)
        copy.opened.push_back({row.stream, row.slot, std::string(stream_name_(row.stream)), {}});
  const Bytes message = encoder_.encode(copy, tensor);
  for (const Watcher& watcher : watchers_)
    if (takes(watcher, message.size()))
      watcher.link->send(message);
    else
      stats_.unwatched.add();
}

void AttachedWorkers::beat() { send_others(&AttachedPeer::beat); }

// To each worker and watcher: how many others take new streams. Of workers that leave for each
// other the first stays: the later ones do not count for it.
void AttachedWorkers::send_others(Send send) {
  std::uint32_t staying = 0, alone = 0;
  for (const auto& [lane, worker] : workers_) {
    staying += !worker.leaving;
    alone += !worker.leaving && worker.alone;
  }
  for (auto& [lane, worker] : workers_) {
    alone -= !worker.leaving && worker.alone;  // the later ones are left
    (worker.*send)(staying - !worker.leaving - (worker.alone ? alone : 0));
  }
  for (Watcher& watcher : watchers_) (watcher.*send)(staying);
}

}  // namespace millrace
