// SPDX-License-Identifier: Apache-2.0
#include "workers/feeds.h"

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "gpu/host_device.h"

namespace millrace {

namespace wp = worker_protocol;

Feeds::Feeds(const FeedShape& shape, SlabSupply supply, LaneStats& stats, Calls calls)
    : shape_(shape), supply_(supply), stats_(stats), calls_(std::move(calls)) {
  stats_.copies = std::vector<CopyStats>(supply_.devices.usable().size());
}

void Feeds::make(FeedOrder order) {
  // A device of another machine is that worker's own affair.
  const auto device = order.here ? supply_.devices.find(order.device) : std::nullopt;
  supply_.threads.post(device, [this, device, order = std::move(order)] {
    if (*order.cancelled) return;
    MadeFeed made = fill(order);
    made.device = device;
    if (made.feed) made.feed->thread = device;
    calls_.made(std::move(made));
  });
}

void Feeds::free(Feed feed) noexcept {
  if (feed.lane) feed.lane->stop();
  try {
    const auto thread = feed.thread;
    supply_.threads.post(thread, [feed = std::move(feed)]() mutable { feed.lane.reset(); });
  } catch (const std::bad_alloc&) {  // it was freed here
  }
}

MadeFeed Feeds::fill(const FeedOrder& order) {
  MadeFeed made{.order = order.number, .feed = wp::Refused{}};
  try {
    made.feed = fill(order, made.failure);
  } catch (const DeviceFailure& failure) {
    const bool full = failure.fault() == DeviceFault::out_of_memory;
    made.failure = failure;
    made.feed = wp::Refused{full ? "no_room" : "device", failure.what()};
  } catch (const std::exception& error) {
    made.feed = wp::Refused{"internal", std::string("no slabs: ") + error.what()};
  }
  return made;
}

Result<Feed, wp::Refused> Feeds::fill(const FeedOrder& order,
                                      std::optional<DeviceFailure>& failed) {
  try {
    if (order.here) supply_.devices.make_ready(order.device);
    if (*order.cancelled) return wp::Refused{"protocol", "it did not wait"};  // is not sent
    auto device = supply_.devices.open(order.here ? order.device : host_device_name);
    if (!device) return wp::Refused{"device", device.error().message};
    return fill(std::move(*device), order);
  } catch (const DeviceFailure& failure) {
    if (!supply_.devices.leaves_to_worker() || !failure.passes()) throw;
    failed = failure;
  }
  auto feed = fill(open_device_of_worker(order.device), order);
  if (feed) feed->why_it_copies = failed->what();
  return feed;
}

Result<Feed, wp::Refused> Feeds::fill(std::unique_ptr<Device> device, const FeedOrder& order) {
  const std::size_t slab =
      SlabRing::slab_bytes_for(shape_.slab_bytes(device->slab_format(shape_.format).dtype));
  if (!order.here && slab > max_sent_tensor)
    return wp::Refused{"no_room", "a batch may be too long for a message"};
  // One more than the worker may hold, so that the next batch is laid out while it computes; what
  // is sent lies in a message besides.
  const std::uint32_t slabs = order.credits + 1, messages = order.here ? 0 : order.credits;
  Feed feed;
  feed.bytes = Share(supply_.bytes, (std::uint64_t{slabs} + messages) * slab);
  if (!feed.bytes)
    return wp::Refused{"no_room",
                       "the slabs of this worker would pass [limits] slab_bytes; those of a lost "
                       "worker count until its process has ended"};
  feed.number = next_++;
  const auto place = device->place();
  feed.lane = std::make_unique<LaneFeed>(
      shape_, std::move(device), slabs,
      [&report = calls_.report, number = feed.number, at = place.value_or(0)](DeviceReport what) {
        std::visit([&](auto&& one) { report({number, at, std::move(one)}); }, std::move(what));
      });
  feed.pageable = place && !feed.lane->device_slabs().pinned();
  if (feed.pageable && !supply_.devices.goes_without_locked_pages())
    return wp::Refused{"device", "the pages of its slabs cannot be locked in memory"};
  // A copy from pages that are not locked delays the thread that starts it, and that would be all
  // streams.
  if (feed.pageable)
    feed.why_it_copies = "the pages of its slabs cannot be locked here";
  else if (place && !feed.lane->device_slabs().handles())
    feed.why_it_copies = "memory of its device cannot be shared";
  if (!feed.why_it_copies.empty()) {
    feed.number = next_++;
    (void)feed.lane->leave_copies_to_worker();
  }
  return feed;
}

void Feeds::note(const MadeFeed& made) {
  if (!made.failure || !made.device) return;
  if (made.failure->passes())
    stats_.copies[*made.device].faults[made.failure->fault()].add();
  else
    calls_.report({next_++, *made.device, DeviceLost{made.failure->fault(), made.failure->what()}});
}

bool Feeds::leave_copies_to_worker(Feed& feed, const std::string& why) {
  const auto place = feed.lane->device().place();
  if (!place) return false;
  feed.number = next_++;
  feed.why_it_copies = why;
  // Before the feed itself, which is freed on the same thread.
  supply_.threads.post(feed.thread, [this, slabs = feed.lane->leave_copies_to_worker(),
                                     number = feed.number, at = *place]() mutable {
    slabs.reset();
    calls_.report({number, at, FormerSlabsGone{}});
  });
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
