// SPDX-License-Identifier: Apache-2.0
// How workers and watchers attach to a hub and leave it, and what their devices report.
#include <string>
#include <utility>
#include <vector>

#include "workers/hub/hub.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

constexpr char hung_up[] = "it hung up before it was welcomed";

}  // namespace

void Hub::hello(WorkerConnection& link, const wp::Hello& hello) noexcept {
  const Time now = Clock::now();
  if (dismissed_) return workers_.refuse(link, {"stopping", "the service is stopping"});
  if (hello.watch) {
    workers_.watch(link, hello, now);
    return settle(now);
  }
  if (const auto refused = workers_.prepare(link, hello)) {
    settings_.log(
        {.what = "worker refused", .worker = hello.name, .why = refused->message, .warning = true});
    workers_.refuse(link, *refused);
  }
}

void Hub::take(std::vector<MadeSlabs>& made) {
  const Time now = Clock::now();
  for (MadeSlabs& one : made) attach(one, now);
  settle(now);
}

// After this process was stopped, the connections that a worker gave up meanwhile still wait. Rows
// handed to one of them would count as rows of a lost worker.
void Hub::attach(MadeSlabs& made, Time now) {
  const auto worker = workers_.arrive(made);
  std::optional<wp::Refused> refused;
  if (!worker || !worker->link->is_connected())
    refused = {"protocol", hung_up};
  else if (!made.slabs)
    refused = made.slabs.error();
  else if (const DeviceLost* lost = workers_.lost_meanwhile(**made.slabs))
    refused = {code_of(*lost), lost->what};
  if (!refused) return welcome(*worker, std::move(*made.slabs), now);
  if (made.slabs) workers_.free(std::move(*made.slabs));
  if (!worker) return;
  settings_.log(
      {.what = "worker refused", .worker = worker->name, .why = refused->message, .warning = true});
  workers_.refuse(*worker->link, *refused);
}

void Hub::welcome(const NewWorker& worker, std::unique_ptr<WorkerSlabs> slabs, Time now) {
  const LaneId lane = lanes_.attach(worker.credits, now);
  settings_.log({"worker attached", worker.name});
  if (!slabs->notes().why_it_copies.empty())
    settings_.log({.what = "worker copies",
                   .worker = worker.name,
                   .why = slabs->notes().why_it_copies,
                   .warning = true});
  workers_.attach(lane, worker, std::move(slabs), now);
}

// A worker that is not welcomed yet may say that it lives, or leave.
void Hub::receive_early(WorkerConnection& link, const wp::ToService& message) {
  if (!workers_.find_new_worker(link) || std::holds_alternative<wp::Heartbeat>(message)) return;
  if (!std::holds_alternative<wp::Bye>(message))
    return protocol_error(link, "a message before Welcome");
  workers_.remove_new_worker(link);
  workers_.say_bye(link);
}

// A watcher has nothing to give back: it shows that it lives, and may leave.
void Hub::receive(Watcher& watcher, const wp::ToService& message) {
  watcher.heard = Clock::now();
  if (std::holds_alternative<wp::Bye>(message))
    workers_.dismiss_watcher(*watcher.link);
  else if (!std::holds_alternative<wp::Heartbeat>(message))
    protocol_error(*watcher.link, "what no watcher sends");
}

void Hub::receive_bye(LaneId lane) {
  if (lanes_.leaving(lane)) return;
  settings_.log({"worker leaves", workers_.find(lane)->name, "it said Bye"});
  const Time now = Clock::now();
  lanes_.bye(lane, now);
  workers_.leave(lane);
  settle(now);
}

void Hub::lost(WorkerConnection& link, WorkerFailure why, Blame blame) noexcept {
  if (workers_.find_watcher(link)) {
    // It takes no batches: to lose it is no failure, what it does wrong is.
    if (why == WorkerFailure::protocol) stats_.failures[why].add();
    return workers_.remove_watcher(link);
  }
  if (const NewWorker* worker = workers_.find_new_worker(link)) {
    if (why == WorkerFailure::protocol)
      stats_.failures[why].add();
    else
      settings_.log(
          {.what = "worker refused", .worker = worker->name, .why = hung_up, .warning = true});
    return workers_.remove_new_worker(link);
  }
  const auto lane = workers_.lane_of(link);
  if (!lane) return;
  const Time now = Clock::now();
  note_lost(*workers_.find(*lane), name_of(why), now);
  stats_.failures[why].add();
  lanes_.lost(*lane, blame, now);
  workers_.remove(*lane);
  settle(now);
}

// If the device is gone for this process, the service stops: the worker may come to the next.
const char* Hub::code_of(const DeviceLost& lost) {
  if (!lost.goes_on) return "stopping";
  return lost.fault == DeviceFault::out_of_memory ? "no_room" : "device";
}

void Hub::take(const std::vector<SlabReport>& reports) {
  const Time now = Clock::now();
  bool changed = false;  // most copies end while their batch is at the worker: nothing is due then
  for (const SlabReport& report : reports) {
    if (const auto lane = workers_.take(report)) {
      lanes_.slab_freed(*lane);
      changed = true;
    }
    if (const auto* lost = std::get_if<DeviceLost>(&report.what)) {
      end_device(report, *lost, now);
      changed = true;
    }
  }
  if (changed) settle(now);
}

// What its workers were handed last may never be there.
void Hub::end_device(const SlabReport& report, const DeviceLost& lost, Time now) {
  std::vector<LaneId> lanes;
  for (const auto& [lane, worker] : workers_.all())
    if (lost.goes_on ? worker.slabs->notes().number == report.slabs
                     : worker.slabs->device().place() == report.device)
      lanes.push_back(lane);
  for (const LaneId lane : lanes) {
    const AttachedWorker& worker = *workers_.find(lane);
    note_lost(worker, lost.what, now);
    workers_.refuse(*worker.link, {code_of(lost), lost.what});
    lanes_.lost(lane, Blame::service, now);
    workers_.remove(lane);
  }
  if (!lost.goes_on) settings_.device_lost(report.device, lost);
}

void Hub::unmapped(LaneId lane) {
  AttachedWorker& worker = *workers_.find(lane);
  if (!workers_.leave_copies_to_worker(lane, "it cannot open the slabs on its device")) return;
  settings_.log({.what = "worker copies",
                 .worker = worker.name,
                 .why = worker.slabs->notes().why_it_copies,
                 .warning = true});
  lanes_.slab_freed(lane);
  settle(Clock::now());
}

}  // namespace millrace
