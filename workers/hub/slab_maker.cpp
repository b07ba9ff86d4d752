// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/slab_maker.h"

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "gpu/host/host_device.h"

namespace millrace {

namespace wp = worker_protocol;

// While the device still works, only the slabs with the reported number are lost.
bool concerns(const SlabReport& report, const WorkerSlabs& slabs) {
  return std::get<DeviceLost>(report.what).device_works
             ? slabs.properties().number == report.slabs
             : slabs.device().device_index() == report.device;
}

// If this process cannot use the device any more, the service stops. The worker may then attach to
// the next process of the service.
wp::Refused refusal_of(const DeviceLost& lost) {
  if (!lost.device_works) return {"stopping", lost.what};
  return {lost.fault == DeviceFault::out_of_memory ? "no_room" : "device", lost.what};
}

SlabMaker::SlabMaker(const BatchShape& shape, SlabSupply supply, LaneStats& stats,
                     std::function<void(SlabMessage)> report)
    : shape_(shape), supply_(supply), stats_(stats), report_(std::move(report)) {
  stats_.copies = std::vector<CopyStats>(supply_.devices.usable().size());
}

void SlabMaker::make(SlabOrder order) {
  // The device of a remote worker is on its own machine.
  const auto device = order.local ? supply_.devices.find(order.device) : std::nullopt;
  supply_.threads.post(device, [this, device, order = std::move(order)] {
    if (*order.cancelled) return;
    MadeSlabs made = make_or_refuse(order);
    made.device = device;
    if (made.slabs) (*made.slabs)->properties().thread = device;
    report_(std::move(made));
  });
}

void SlabMaker::free(std::unique_ptr<WorkerSlabs> slabs) noexcept {
  slabs->stop();
  try {
    const auto thread = slabs->properties().thread;
    supply_.threads.post(thread, [slabs = std::move(slabs)]() mutable { slabs.reset(); });
  } catch (const std::bad_alloc&) {  // the destruction of the job freed them here
  }
}

MadeSlabs SlabMaker::make_or_refuse(const SlabOrder& order) {
  MadeSlabs made{.order = order.number, .slabs = wp::Refused{}};
  try {
    made.slabs = make_with_fallback(order, made.failure);
  } catch (const DeviceFailure& failure) {
    const bool full = failure.fault() == DeviceFault::out_of_memory;
    made.failure = failure;
    made.slabs = wp::Refused{full ? "no_room" : "device", failure.what()};
  } catch (const std::exception& error) {
    made.slabs = wp::Refused{"internal", std::string("slabs cannot be created: ") + error.what()};
  }
  return made;
}

SlabMaker::Made SlabMaker::make_with_fallback(const SlabOrder& order,
                                              std::optional<DeviceFailure>& failed) {
  try {
    if (order.local) supply_.devices.make_ready(order.device);
    if (*order.cancelled) return wp::Refused{"protocol", "the worker did not wait"};  // is not sent
    auto device = supply_.devices.open(order.local ? order.device : host_device_name);
    if (!device) return wp::Refused{"device", device.error().message};
    return make_on(std::move(*device), order);
  } catch (const DeviceFailure& failure) {
    if (!supply_.devices.lets_worker_copy() || !failure.recoverable()) throw;
    failed = failure;
  }
  auto made = make_on(open_device_of_worker(order.device), order);
  if (made) (*made)->properties().copy_reason = failed->what();
  return made;
}

SlabMaker::Made SlabMaker::make_on(std::unique_ptr<Device> device, const SlabOrder& order) {
  const std::size_t slab =
      SlabRing::slab_bytes_for(shape_.slab_bytes(device->slab_format(shape_.format).dtype));
  if (!order.local && slab > max_sent_tensor)
    return wp::Refused{"no_room",
                       "a batch of this pipeline can be longer than a message to a remote worker"};
  // One more than the credits, so that the next batch is written while the worker computes. A batch
  // for a remote worker is in a message, too.
  const std::uint32_t slabs = order.credits + 1, messages = order.local ? 0 : order.credits;
  WorkerSlabs::Properties properties;
  properties.bytes = Share(supply_.bytes, (std::uint64_t{slabs} + messages) * slab);
  if (!properties.bytes)
    return wp::Refused{"no_room",
                       "the slabs of this worker would exceed [limits] slab_bytes; slabs of a lost "
                       "worker count until its process has ended"};
  properties.number = next_++;
  const auto device_index = device->device_index();
  auto made = std::make_unique<WorkerSlabs>(
      shape_, std::move(device), slabs,
      [this, number = properties.number, at = device_index.value_or(0)](DeviceReport what) {
        std::visit(
            [&](auto&& one) {
              report_(SlabReport{number, at, std::move(one)});
            },
            std::move(what));
      });
  properties.pageable = device_index && !made->device_slabs().pinned();
  if (properties.pageable && !supply_.devices.allows_pageable())
    return wp::Refused{"device", "the pages of its slabs cannot be locked in memory"};
  // A copy from pages that are not locked blocks the thread that starts it, and so all streams of
  // the pipeline.
  if (properties.pageable)
    properties.copy_reason = "the pages of its slabs cannot be locked in memory";
  else if (device_index && !made->device_slabs().handles())
    properties.copy_reason = "memory of its device cannot be shared with another process";
  if (!properties.copy_reason.empty()) {
    properties.number = next_++;
    (void)made->leave_copies_to_worker();
  }
  made->properties() = std::move(properties);
  return made;
}

void SlabMaker::count_failure(const MadeSlabs& made) {
  if (!made.failure || !made.device) return;
  if (made.failure->recoverable())
    stats_.copies[*made.device].faults[made.failure->fault()].add();
  else
    report_(
        SlabReport{next_++, *made.device, DeviceLost{made.failure->fault(), made.failure->what()}});
}

bool SlabMaker::leave_copies_to_worker(WorkerSlabs& slabs, const std::string& why) {
  const auto device_index = slabs.device().device_index();
  if (!device_index) return false;
  WorkerSlabs::Properties& properties = slabs.properties();
  properties.number = next_++;
  properties.copy_reason = why;
  // The slabs on the host are freed later on the same thread, so the device's are destroyed first.
  supply_.threads.post(properties.thread,
                       [this, former = slabs.leave_copies_to_worker(), number = properties.number,
                        at = *device_index]() mutable {
                         former.reset();
                         report_(SlabReport{number, at, FormerSlabsFreed{}});
                       });
  return true;
}

void SlabMaker::count_report(const SlabReport& report) {
  CopyStats& stats = stats_.copies[report.device];
  const auto* lost = std::get_if<DeviceLost>(&report.what);
  if (lost && !lost->repeated) stats.faults[lost->fault].add();
  if (const auto* copy = std::get_if<CopyEnded>(&report.what)) {
    stats.copies.add();
    stats.bytes.add(copy->bytes);
    if (copy->took) stats.took.observe(*copy->took);
  }
}

}  // namespace millrace
