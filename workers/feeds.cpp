// SPDX-License-Identifier: Apache-2.0
#include "workers/feeds.h"

#include <utility>
#include <vector>

#include "gpu/host_device.h"
#include "workers/protocol.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

// Of a message with a batch, for its rows and names: far more than they need.
constexpr std::size_t room_beside_tensor = std::size_t{64} << 20;

}  // namespace

Feeds::Feeds(const FeedShape& shape, SlabSupply supply, LaneStats& stats, Report report)
    : shape_(shape), supply_(supply), stats_(stats), report_(std::move(report)) {
  stats_.copies = std::vector<CopyStats>(supply_.devices.usable().size());
}

Result<Feed, wp::Refused> Feeds::make(const wp::Hello& hello,
                                      const std::optional<DeviceFailure>& no_device, bool here,
                                      LaneFeed::Hand hand) try {
  try {
    if (no_device) throw DeviceFailure(*no_device);
    // A device of another machine is that worker's own affair.
    auto device = supply_.devices.open(here ? hello.device : host_device_name);
    if (!device) return wp::Refused{"device", device.error().message};
    return make(std::move(*device), hello.credits, here, hand);
  } catch (const DeviceFailure& failure) {
    if (!supply_.devices.leaves_to_worker() || !failure.passes()) throw;
    note(hello.device, failure);
    auto feed = make(open_device_of_worker(hello.device), hello.credits, here, std::move(hand));
    if (feed) feed->why_it_copies = failure.what();
    return feed;
  }
} catch (const DeviceFailure& failure) {
  note(hello.device, failure);
  const bool full = failure.fault() == DeviceFault::out_of_memory;
  return wp::Refused{full ? "no_room" : "device", failure.what()};
}

// Of a device that has failed for good all are to hear, as of one that fails over a batch.
void Feeds::note(std::string_view device, const DeviceFailure& failure) {
  const auto place = supply_.devices.find(device);
  if (!place) return;
  if (failure.passes())
    stats_.copies[*place].faults[failure.fault()].add();
  else
    report_({next_++, *place, DeviceLost{failure.fault(), failure.what()}});
}

Result<Feed, wp::Refused> Feeds::make(std::unique_ptr<Device> device, std::uint32_t credits,
                                      bool here, LaneFeed::Hand hand) {
  const std::size_t slab =
      SlabRing::slab_bytes_for(shape_.slab_bytes(device->slab_format(shape_.format).dtype));
  if (!here && slab > wp::max_to_worker - room_beside_tensor)
    return wp::Refused{"no_room", "a batch may be too long for a message"};
  // One more than the worker may hold, so that the next batch is laid out while it computes; what
  // is sent lies in a message besides.
  const std::uint32_t slabs = credits + 1, messages = here ? 0 : credits;
  Feed feed;
  feed.bytes = Share(supply_.bytes, (std::uint64_t{slabs} + messages) * slab);
  if (!feed.bytes)
    return wp::Refused{"no_room",
                       "the slabs of this worker would pass [limits] slab_bytes; those of a lost "
                       "worker count until its process has ended"};
  feed.number = next_++;
  const auto place = device->place();
  feed.lane = std::make_unique<LaneFeed>(
      shape_, std::move(device), slabs, std::move(hand),
      [&report = report_, number = feed.number, at = place.value_or(0)](DeviceReport what) {
        report({number, at, std::move(what)});
      });
  feed.pageable = place && !feed.lane->device_slabs().pinned();
  if (feed.pageable && !supply_.devices.goes_without_locked_pages())
    return wp::Refused{"device", "the pages of its slabs cannot be locked in memory"};
  // A copy from pages that are not locked holds up who starts it, and that would be all streams.
  if (feed.pageable)
    leave_copies_to_worker(feed, "the pages of its slabs cannot be locked here");
  else if (place && !feed.lane->device_slabs().handles())
    leave_copies_to_worker(feed, "memory of its device cannot be shared");
  return feed;
}

bool Feeds::leave_copies_to_worker(Feed& feed, const std::string& why) {
  if (!feed.lane->device().place()) return false;
  feed.number = next_++;
  feed.lane->leave_copies_to_worker();
  feed.why_it_copies = why;
  return true;
}

void Feeds::count(const FeedReport& report) {
  CopyStats& stats = stats_.copies[report.device];
  const auto* lost = std::get_if<DeviceLost>(&report.what);
  if (lost && !lost->told) stats.faults[lost->fault].add();
  if (const auto* copy = std::get_if<CopyEnded>(&report.what)) {
    stats.copies.add();
    stats.bytes.add(copy->bytes);
    if (copy->took) stats.took.observe(*copy->took);
  }
}

}  // namespace millrace
