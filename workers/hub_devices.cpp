// SPDX-License-Identifier: Apache-2.0
// What a hub does when the devices of its workers report.
#include <string>
#include <vector>

#include "workers/hub.h"

namespace millrace {

// If the device is gone for this process, the service stops: the worker may come to the next.
const char* Hub::code_of(const DeviceLost& lost) {
  if (!lost.goes_on) return "stopping";
  return lost.fault == DeviceFault::out_of_memory ? "no_room" : "device";
}

void Hub::take(const std::vector<FeedReport>& reports) {
  const Time now = Clock::now();
  bool changed = false;  // most copies end while their batch is at the worker: nothing is due then
  for (const FeedReport& report : reports) {
    if (const auto lane = seats_.take(report)) {
      lanes_.set_slab(*lane, true, now);
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
void Hub::end_device(const FeedReport& report, const DeviceLost& lost, Time now) {
  std::vector<LaneId> lanes;
  for (const auto& [lane, seat] : seats_.all())
    if (lost.goes_on ? seat.feed.number == report.feed
                     : seat.feed.lane->device().place() == report.device)
      lanes.push_back(lane);
  for (const LaneId lane : lanes) {
    const Seat& seat = *seats_.find(lane);
    settings_.log({.what = "worker lost", .worker = seat.name, .why = lost.what, .warning = true});
    book_.lost(lane, lost.what, now);
    seats_.refuse(*seat.link, {code_of(lost), lost.what});
    lanes_.lost(lane, Blame::service, now);
    seats_.remove(lane);
  }
  if (!lost.goes_on) settings_.device_lost(report.device, lost);
}

void Hub::unmapped(LaneId lane) {
  Seat& seat = *seats_.find(lane);
  if (!seats_.leave_copies_to_worker(lane, "it cannot open the slabs on its device")) return;
  settings_.log({.what = "worker copies",
                 .worker = seat.name,
                 .why = seat.feed.why_it_copies,
                 .warning = true});
  const Time now = Clock::now();
  lanes_.set_slab(lane, seat.feed.lane->has_slab(), now);
  settle(now);
}

}  // namespace millrace
