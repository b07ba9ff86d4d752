// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/budget.h"
#include "base/result.h"
#include "gpu/cuda/devices.h"
#include "schemas/worker_messages.h"
#include "schemas/worker_protocol.h"
#include "workers/feed/worker_slabs.h"
#include "workers/hub/slab_threads.h"
#include "workers/lanes/stats.h"

namespace millrace {

// The longest tensor, in bytes, of a message to a remote worker. The other 64 MiB of the message
// are more than the rows and names of a batch need.
inline constexpr std::size_t max_sent_tensor =
    worker_protocol::max_to_worker - (std::size_t{64} << 20);

// The resources for slabs: the devices of the process, the budget of bytes for all slabs on the
// host, and the threads that make and free slabs. Devices and budget must outlive all slabs.
struct SlabSupply {
  Devices& devices;
  Budget& bytes;
  SlabThreads& threads;
};

// After WorkerSlabs::leave_copies_to_worker(): the slabs on the device are freed.
struct FormerSlabsFreed {};

// An event of a worker's slabs.
struct SlabReport {
  std::uint64_t slabs = 0;  // Properties::number of the slabs
  std::size_t device = 0;   // index in Devices::usable()
  std::variant<CopyEnded, SlabFreed, DeviceLost, FormerSlabsFreed> what;
};

// An order for the slabs of one worker.
struct SlabOrder {
  std::uint64_t number = 0;  // identifies the order
  std::string device;        // as in Hello
  std::uint32_t credits = 0;
  bool local = true;  // the worker is on this machine; false: its tensors are sent
  // Set by the caller if the worker is gone: the slabs are not needed any more.
  std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
};

// The result of an order.
struct MadeSlabs {
  std::uint64_t order = 0;
  Result<std::unique_ptr<WorkerSlabs>, worker_protocol::Refused> slabs;
  std::optional<std::size_t> device = {};     // index in Devices::usable(); nullopt: the host
  std::optional<DeviceFailure> failure = {};  // failure of the device, also if the worker copies
};

// Messages from the threads of slabs and of devices to the home thread.
using SlabMessage = std::variant<SlabReport, MadeSlabs>;

// True if these slabs are lost because of the report. Requires: the report is a DeviceLost.
bool concerns(const SlabReport& report, const WorkerSlabs& slabs);
// The refusal for the workers of the device.
worker_protocol::Refused refusal_of(const DeviceLost& lost);

// Makes the slabs of a pipeline's workers, on the devices that the workers name, and frees them.
// Both happen on SlabThreads. The calls are confined to one thread.
class SlabMaker {
 public:
  // `stats` must outlive it, and it must outlive the run of the threads. `report` is called on
  // threads of SlabThreads and of devices, and within count_failure().
  SlabMaker(const BatchShape& shape, SlabSupply supply, LaneStats& stats,
            std::function<void(SlabMessage)> report);

  // Makes slabs and reports MadeSlabs, which happens later. An order that was cancelled in time is
  // not reported. Throws std::bad_alloc.
  void make(SlabOrder order);
  // Frees the slabs, which happens later. They count in the budget until then.
  void free(std::unique_ptr<WorkerSlabs> slabs) noexcept;

  // Counts the failure of the device, if there was one. If this process cannot use the device any
  // more, reports DeviceLost instead, which count_report() counts.
  void count_failure(const MadeSlabs& made);
  // Counts copies and failures of devices.
  void count_report(const SlabReport& report);

  // The worker copies from the slabs on the host from now on. The slabs get a new number, and
  // FormerSlabsFreed is reported later. Returns false if the worker does so already, or computes on
  // the host.
  bool leave_copies_to_worker(WorkerSlabs& slabs, const std::string& why);

 private:
  using Made = Result<std::unique_ptr<WorkerSlabs>, worker_protocol::Refused>;

  [[nodiscard]] MadeSlabs make_or_refuse(const SlabOrder& order);
  [[nodiscard]] Made make_with_fallback(const SlabOrder& order,
                                        std::optional<DeviceFailure>& failed);
  [[nodiscard]] Made make_on(std::unique_ptr<Device> device, const SlabOrder& order);

  const BatchShape shape_;
  const SlabSupply supply_;
  LaneStats& stats_;
  const std::function<void(SlabMessage)> report_;
  std::atomic<std::uint64_t> next_{1};
};

}  // namespace millrace
