// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/attached_workers.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <variant>

namespace millrace {

namespace wp = worker_protocol;

namespace {

// In bytes. A watcher with more unsent output misses batches.
constexpr std::size_t max_watcher_backlog = std::size_t{4} << 20;

bool accepts(const Watcher& watcher, std::size_t bytes) {
  const std::size_t unsent = watcher.link->unsent();
  return unsent == 0 || unsent + bytes <= max_watcher_backlog;
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
  by_slabs_[worker.slabs->properties().number] = lane;
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
  update_slab_gauges(worker);
  send_company(&AttachedPeer::announce);
}

void AttachedWorkers::add_watcher(WorkerConnection& link, const std::string& name, Time now) {
  watchers_.push_back({{&link, name}, now});
  link.send(encoder_.encode(welcome()));
  send_company(&AttachedPeer::announce);
}

void AttachedWorkers::remove_watcher(const WorkerConnection& link) {
  std::erase_if(watchers_, [&](const Watcher& watcher) { return watcher.link == &link; });
}

Watcher* AttachedWorkers::find_watcher(const WorkerConnection& link) {
  const auto watcher = std::ranges::find(watchers_, &link, &Watcher::link);
  return watcher == watchers_.end() ? nullptr : &*watcher;
}

Watcher* AttachedWorkers::longest_silent_watcher() {
  const auto watcher = std::ranges::min_element(watchers_, {}, &Watcher::last_received);
  return watcher == watchers_.end() ? nullptr : &*watcher;
}

void AttachedWorkers::extend_watcher_deadlines(Duration late, Time now) {
  for (Watcher& watcher : watchers_)
    watcher.last_received = std::min(watcher.last_received + late, now);
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
  welcome.width_buckets = settings_.width_buckets;
  welcome.row_buckets = settings_.row_buckets;
  return welcome;
}

void AttachedWorkers::leave(LaneId lane, const MovedStreams& streams) {
  AttachedWorker& worker = workers_.at(lane);
  worker.leaving = true;
  worker.streams = streams;
  worker.sent.reset();
  send_company(&AttachedPeer::announce);
}

std::optional<LaneId> AttachedWorkers::on_slab_report(const SlabReport& report) {
  const auto lane = by_slabs_.find(report.slabs);
  if (lane == by_slabs_.end() || std::holds_alternative<DeviceLost>(report.what))
    return std::nullopt;
  AttachedWorker& worker = workers_.at(lane->second);
  WorkerSlabs& slabs = *worker.slabs;
  if (const auto* copy = std::get_if<CopyEnded>(&report.what)) {
    if (!slabs.on_copy_ended(*copy)) return std::nullopt;
  } else if (const auto* free = std::get_if<SlabFreed>(&report.what)) {
    slabs.on_slab_freed(free->slab);
  } else {
    slabs.on_former_slabs_freed();
    if (!slabs.has_slab()) return std::nullopt;
  }
  update_slab_gauges(worker);
  return lane->second;
}

bool AttachedWorkers::leave_copies_to_worker(LaneId lane, const std::string& why) {
  WorkerSlabs& slabs = *workers_.at(lane).slabs;
  const auto old_number = slabs.properties().number;
  if (!maker_.leave_copies_to_worker(slabs, why)) return false;
  by_slabs_.erase(old_number);
  by_slabs_[slabs.properties().number] = lane;
  update_slab_gauges(workers_.at(lane));
  return true;
}

SlabGauges AttachedWorkers::gauges_of(const WorkerSlabs& slabs) {
  const SlabRing& ring = slabs.ring();
  const auto slab = static_cast<std::int64_t>(ring.slab_bytes());
  SlabGauges gauges;
  if (slabs.properties().pageable) gauges.pageable = slab * ring.slabs();
  if (!slabs.device().device_index()) return gauges;
  gauges.used = slab * ring.used();
  gauges.free = slab * (ring.slabs() - ring.used());
  return gauges;
}

void AttachedWorkers::update_slab_gauges(AttachedWorker& worker, const SlabGauges& now) {
  stats_.slabs.used.add(now.used - worker.slab_gauges.used);
  stats_.slabs.free.add(now.free - worker.slab_gauges.free);
  stats_.slabs.pageable.add(now.pageable - worker.slab_gauges.pageable);
  worker.slab_gauges = now;
}

void AttachedWorkers::give_room(LaneId lane, const worker_protocol::Room& room) {
  AttachedWorker* const worker = find(lane);
  if (worker) worker->link->send(encoder_.encode(room));
}

void AttachedWorkers::remove(LaneId lane, std::string_view why, Time now) {
  auto removed = extract(lane);
  lost_workers_.add(removed.mapped().name, why, now);
  free(removed.mapped(), removed.mapped().process != nullptr);
}

// Memory of a device must not be freed while another process has it open. Other slabs are freed at
// once: the same thread makes the slabs of the worker's next connection, so these are freed first.
void AttachedWorkers::disconnect(LaneId lane) {
  auto removed = extract(lane);
  free(removed.mapped(), removed.mapped().slabs->device_slabs().handles() != nullptr);
  removed.mapped().link->send_bye();
}

AttachedWorkers::Workers::node_type AttachedWorkers::extract(LaneId lane) {
  auto removed = workers_.extract(lane);
  AttachedWorker& worker = removed.mapped();
  by_link_.erase(worker.link);
  by_slabs_.erase(worker.slabs->properties().number);
  update_slab_gauges(worker, {});
  send_company(&AttachedPeer::announce);
  return removed;
}

void AttachedWorkers::free(AttachedWorker& worker, bool after_process_end) {
  if (after_process_end)
    lost_slabs_.keep(std::move(worker.slabs), std::move(worker.process));
  else
    maker_.free(std::move(worker.slabs));
}

void AttachedWorkers::disconnect_all() {
  while (!workers_.empty()) disconnect(workers_.begin()->first);
  for (const Watcher& watcher : std::exchange(watchers_, {})) watcher.link->send_bye();
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

// Workers on other machines and watchers receive the finished tensor, also if the slab holds bare
// rows, which a device would expand.
Bytes AttachedWorkers::tensor_of(const wp::HandedBatch& batch, Bytes slab, const RowFormat& as) {
  const std::size_t bytes = tensor_bytes(batch);
  if (!as.bare) return slab.first(bytes);
  windows_.clear();
  for (const wp::RowEntry& row : batch.framed) windows_.push_back({row.left, row.size, row.right});
  expanded_.resize(bytes);
  expand_rows(format(), slab, windows_, batch.width, expanded_);
  return expanded_;
}

void AttachedWorkers::hand_over(AttachedWorker& worker, const wp::HandedBatch& batch) {
  const WorkerSlabs& slabs = *worker.slabs;
  const Bytes slab = slabs.ring().slab(batch.slab);
  worker.link->send(
      encoder_.encode(batch, worker.process ? Bytes() : tensor_of(batch, slab, slabs.format())));
  if (watchers_.empty()) return;
  if (any_watcher_accepts(tensor_bytes(batch)))
    copy_to_watchers(batch, tensor_of(batch, slab, slabs.format()));
  else
    stats_.watcher_misses.add(watchers_.size());
}

// Checked before the copy is made, which may have hundreds of megabytes.
bool AttachedWorkers::any_watcher_accepts(std::size_t tensor) const {
  return tensor <= max_sent_tensor && std::ranges::any_of(watchers_, [&](const Watcher& watcher) {
           return accepts(watcher, tensor);
         });
}

void AttachedWorkers::copy_to_watchers(const wp::HandedBatch& batch, Bytes tensor) {
  wp::HandedBatch copy = batch;
  // A watcher may have missed the openings of streams, so a copy names all its streams.
  std::unordered_set<StreamId> named;
  for (const wp::OpenedStream& stream : batch.opened) named.insert(stream.stream);
  for (const auto* rows : {&batch.framed, &batch.marks})
    for (const wp::RowEntry& row : *rows)
      if (named.insert(row.stream).second)
        copy.opened.push_back({row.stream, row.slot, std::string(stream_name_(row.stream)), {}});
  const Bytes message = encoder_.encode(copy, tensor);
  for (const Watcher& watcher : watchers_)
    if (accepts(watcher, message.size()))
      watcher.link->send(message);
    else
      stats_.watcher_misses.add();
}

void AttachedWorkers::send_heartbeats(const Lanes& lanes) {
  for (auto& [lane, worker] : workers_)
    if (worker.leaving) worker.streams = lanes.leaving_streams(lane);
  send_company(&AttachedPeer::send_heartbeat);
}

// Passes to each worker and watcher the number of other workers that take new streams. Among the
// workers with `alone`, each counts only those with lower lane ids. So the first one stays.
void AttachedWorkers::send_company(Send send) {
  const auto count = [](std::size_t streams) { return static_cast<std::uint32_t>(streams); };
  std::uint32_t staying = 0, alone = 0;
  for (const auto& [lane, worker] : workers_) {
    staying += !worker.leaving;
    alone += !worker.leaving && worker.alone;
  }
  for (auto& [lane, worker] : workers_) {
    alone -= !worker.leaving && worker.alone;  // now the number of those with higher ids
    (worker.*send)({.workers = staying - !worker.leaving - (worker.alone ? alone : 0),
                    .moved = count(worker.streams.moved),
                    .waiting = count(worker.streams.waiting)});
  }
  for (Watcher& watcher : watchers_) (watcher.*send)({.workers = staying});
}

}  // namespace millrace
