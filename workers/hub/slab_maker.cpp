// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/slab_maker.h"

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "gpu/host/host_device.h"

namespace millrace {

namespace wp = worker_protocol;

// If a device goes on, only the slabs whose number was reported are lost.
bool concerns(const SlabReport& report, const WorkerSlabs& slabs) {
  return std::get<DeviceLost>(report.what).goes_on ? slabs.notes().number == report.slabs
                                                   : slabs.device().place() == report.device;
}

// If the device is gone for this process, the service stops: the worker may come to the next.
wp::Refused refusal_of(const DeviceLost& lost) {
  if (!lost.goes_on) return {"stopping", lost.what};
  return {lost.fault == DeviceFault::out_of_memory ? "no_room" : "device", lost.what};
}

SlabMaker::SlabMaker(const BatchShape& shape, SlabSupply supply, LaneStats& stats,
                     std::function<void(SlabNews)> report)
    : shape_(shape), supply_(supply), stats_(stats), report_(std::move(report)) {
  stats_.copies = std::vector<CopyStats>(supply_.devices.usable().size());
}

void SlabMaker::make(SlabOrder order) {
  // A device of another machine is that worker's own affair.
  const auto device = order.here ? supply_.devices.find(order.device) : std::nullopt;
  supply_.threads.post(device, [this, device, order = std::move(order)] {
    if (*order.cancelled) return;
    MadeSlabs made = fill(order);
    made.device = device;
    if (made.slabs) (*made.slabs)->notes().thread = device;
    report_(std::move(made));
  });
}

void SlabMaker::free(std::unique_ptr<WorkerSlabs> slabs) noexcept {
  slabs->stop();
  try {
    const auto thread = slabs->notes().thread;
    supply_.threads.post(thread, [slabs = std::move(slabs)]() mutable { slabs.reset(); });
  } catch (const std::bad_alloc&) {  // it was freed here
  }
}

MadeSlabs SlabMaker::fill(const SlabOrder& order) {
  MadeSlabs made{.order = order.number, .slabs = wp::Refused{}};
  try {
    made.slabs = fill(order, made.failure);
  } catch (const DeviceFailure& failure) {
    const bool full = failure.fault() == DeviceFault::out_of_memory;
    made.failure = failure;
    made.slabs = wp::Refused{full ? "no_room" : "device", failure.what()};
  } catch (const std::exception& error) {
    made.slabs = wp::Refused{"internal", std::string("no slabs: ") + error.what()};
  }
  return made;
}

SlabMaker::Made SlabMaker::fill(const SlabOrder& order, std::optional<DeviceFailure>& failed) {
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
  auto made = fill(open_device_of_worker(order.device), order);
  if (made) (*made)->notes().why_it_copies = failed->what();
  return made;
}

SlabMaker::Made SlabMaker::fill(std::unique_ptr<Device> device, const SlabOrder& order) {
  const std::size_t slab =
      SlabRing::slab_bytes_for(shape_.slab_bytes(device->slab_format(shape_.format).dtype));
  if (!order.here && slab > max_sent_tensor)
    return wp::Refused{"no_room", "a batch may be too long for a message"};
  // One more than the worker may hold, so that the next batch is laid out while it computes; what
  // is sent lies in a message besides.
  const std::uint32_t slabs = order.credits + 1, messages = order.here ? 0 : order.credits;
  WorkerSlabs::Notes notes;
  notes.bytes = Share(supply_.bytes, (std::uint64_t{slabs} + messages) * slab);
  if (!notes.bytes)
    return wp::Refused{"no_room",
                       "the slabs of this worker would pass [limits] slab_bytes; those of a lost "
                       "worker count until its process has ended"};
  notes.number = next_++;
  const auto place = device->place();
  auto made = std::make_unique<WorkerSlabs>(
      shape_, std::move(device), slabs,
      [this, number = notes.number, at = place.value_or(0)](DeviceReport what) {
        std::visit(
            [&](auto&& one) {
              report_(SlabReport{number, at, std::move(one)});
            },
            std::move(what));
      });
  notes.pageable = place && !made->device_slabs().pinned();
  if (notes.pageable && !supply_.devices.goes_without_locked_pages())
    return wp::Refused{"device", "the pages of its slabs cannot be locked in memory"};
  // A copy from pages that are not locked delays the thread that starts it, and that would be all
  // streams.
  if (notes.pageable)
    notes.why_it_copies = "the pages of its slabs cannot be locked here";
  else if (place && !made->device_slabs().handles())
    notes.why_it_copies = "memory of its device cannot be shared";
  if (!notes.why_it_copies.empty()) {
    notes.number = next_++;
    (void)made->leave_copies_to_worker();
  }
  made->notes() = std::move(notes);
  return made;
}

void SlabMaker::note(const MadeSlabs& made) {
  if (!made.failure || !made.device) return;
  if (made.failure->passes())
    stats_.copies[*made.device].faults[made.failure->fault()].add();
  else
    report_(
        SlabReport{next_++, *made.device, DeviceLost{made.failure->fault(), made.failure->what()}});
}

bool SlabMaker::leave_copies_to_worker(WorkerSlabs& slabs, const std::string& why) {
  const auto place = slabs.device().place();
  if (!place) return false;
  WorkerSlabs::Notes& notes = slabs.notes();
  notes.number = next_++;
  notes.why_it_copies = why;
  // Before the slabs on the host, which are freed on the same thread.
  supply_.threads.post(notes.thread, [this, former = slabs.leave_copies_to_worker(),
                                      number = notes.number, at = *place]() mutable {
    former.reset();
    report_(SlabReport{number, at, FormerSlabsGone{}});
  });
  return true;
}

void SlabMaker::count(const SlabReport& report) {
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
