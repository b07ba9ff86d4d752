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
#include "workers/hub/slab_threads.h"
#include "workers/hub/worker_slabs.h"
#include "workers/lanes/stats.h"

namespace millrace {

// A longer tensor fits into no message: beside it there is room for far more rows and names than a
// batch has.
inline constexpr std::size_t max_sent_tensor =
    worker_protocol::max_to_worker - (std::size_t{64} << 20);

// Where slabs come from: the devices of the process, the bytes that all slabs on the host may have,
// and the threads that make and free them. Devices and bytes outlive whatever takes of them.
struct SlabSupply {
  Devices& devices;
  Budget& bytes;
  SlabThreads& threads;
};

// The slabs on the device of a worker that copies from now on are gone.
struct FormerSlabsGone {};

// What was reported of the slabs of a worker.
struct SlabReport {
  std::uint64_t slabs = 0;  // their number
  std::size_t device = 0;   // its place among Devices::usable()
  std::variant<CopyEnded, SlabFreed, DeviceLost, FormerSlabsGone> what;
};

// Slabs that are to be made.
struct SlabOrder {
  std::uint64_t number = 0;  // of the order, for whoever placed it
  std::string device;        // as in Hello
  std::uint32_t credits = 0;
  bool here = true;  // the worker is on this machine; otherwise its tensors are sent
  // Set if the worker is gone: nothing has to be made.
  std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
};

// What became of an order.
struct MadeSlabs {
  std::uint64_t order = 0;
  Result<std::unique_ptr<WorkerSlabs>, worker_protocol::Refused> slabs;
  std::optional<std::size_t> device = {};     // its place among Devices::usable()
  std::optional<DeviceFailure> failure = {};  // of the device, also if the worker copies instead
};

// From the threads of slabs and of devices to the home thread.
using SlabNews = std::variant<SlabReport, MadeSlabs>;

// Whether the loss of a device that was reported concerns these slabs.
bool concerns(const SlabReport& report, const WorkerSlabs& slabs);
// What its workers are told.
worker_protocol::Refused refusal_of(const DeviceLost& lost);

// Makes the slabs of a pipeline's workers, on the devices that they name, and frees them: both on
// SlabThreads. Confined to one thread, but for what it says.
class SlabMaker {
 public:
  // `stats` outlive it. It outlives the run of the threads. `report` is called on threads of
  // SlabThreads and of devices.
  SlabMaker(const BatchShape& shape, SlabSupply supply, LaneStats& stats,
            std::function<void(SlabNews)> report);

  // Reports MadeSlabs later. Throws std::bad_alloc.
  void make(SlabOrder order);
  // Frees it later. Its bytes count until then.
  void free(std::unique_ptr<WorkerSlabs> slabs) noexcept;

  // Counts the failure of a device over an order; one that the device does not survive is reported.
  void note(const MadeSlabs& made);
  void count(const SlabReport& report);

  // The worker copies from now on. False: it does so already, or computes on the host.
  bool leave_copies_to_worker(WorkerSlabs& slabs, const std::string& why);

 private:
  using Made = Result<std::unique_ptr<WorkerSlabs>, worker_protocol::Refused>;

  [[nodiscard]] MadeSlabs fill(const SlabOrder& order);
  [[nodiscard]] Made fill(const SlabOrder& order, std::optional<DeviceFailure>& failed);
  [[nodiscard]] Made fill(std::unique_ptr<Device> device, const SlabOrder& order);

  const BatchShape shape_;
  const SlabSupply supply_;
  LaneStats& stats_;
  const std::function<void(SlabNews)> report_;
  std::atomic<std::uint64_t> next_{1};
};

}  // namespace millrace
