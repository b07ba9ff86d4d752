// SPDX-License-Identifier: Apache-2.0
// The part of Hub about slabs: those that were made for new workers, and reports of their devices.
#include <utility>

#include "workers/hub/hub.h"

namespace millrace {

void Hub::on_slab_messages(std::vector<SlabMessage>& messages) {
  const Time now = Clock::now();
  bool changed = false;  // most reports are ends of copies, after which nothing is due
  for (SlabMessage& one : messages) {
    if (auto* made = std::get_if<MadeSlabs>(&one)) {
      on_slabs_made(*made, now);
      changed = true;
    } else if (on_slab_report(std::get<SlabReport>(one), now)) {
      changed = true;
    }
  }
  if (changed) settle(now);
}

bool Hub::on_slab_report(const SlabReport& report, Time now) {
  maker_.count_report(report);
  new_workers_.on_slab_report(report);
  if (const auto* lost = std::get_if<DeviceLost>(&report.what)) {
    end_device(report, *lost, now);
    return true;
  }
  const auto lane = workers_.on_slab_report(report);
  if (lane) lanes_.slab_freed(*lane);
  return lane.has_value();
}

void Hub::on_slabs_made(MadeSlabs& made, Time now) {
  auto worker = new_workers_.take(made);
  const auto refused = worker ? new_workers_.refusal(*worker, made) : std::nullopt;
  if (!worker || refused) {
    if (made.slabs) maker_.free(std::move(*made.slabs));
    if (!worker) return;
    settings_.log(warning("worker refused", worker->name, refused->message));
    return worker->link->refuse(*refused);
  }
  settings_.log({"worker attached", worker->name});
  const std::string& copy_reason = (*made.slabs)->properties().copy_reason;
  if (!copy_reason.empty())
    settings_.log(warning("worker copies from host memory", worker->name, copy_reason));
  workers_.attach(lanes_.attach(worker->credits, now), std::move(*worker), std::move(*made.slabs),
                  now);
}

// The last batches that its workers received may never arrive on the device.
void Hub::end_device(const SlabReport& report, const DeviceLost& lost, Time now) {
  std::vector<LaneId> lanes;
  for (const auto& [lane, worker] : workers_.all())
    if (concerns(report, *worker.slabs)) lanes.push_back(lane);
  for (const LaneId lane : lanes) {
    lanes_.lost(lane, LossCause::service, now);
    remove_lost(lane, lost.what, refusal_of(lost), now);
  }
  if (!lost.device_works) settings_.device_lost(report.device, lost);
}

void Hub::receive_unmapped(LaneId lane) {
  const AttachedWorker& worker = *workers_.find(lane);
  if (!workers_.leave_copies_to_worker(lane, "it cannot open the slabs on its device")) return;
  settings_.log(warning("worker copies from host memory", worker.name,
                        worker.slabs->properties().copy_reason));
  lanes_.slab_freed(lane);
  settle(Clock::now());
}

}  // namespace millrace
