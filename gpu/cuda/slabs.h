// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/budget.h"
#include "base/queue.h"
#include "gpu/cuda/calls.h"
#include "gpu/cuda/cuda.h"
#include "gpu/cuda/sources.h"
#include "gpu/host/device.h"

namespace millrace::cuda {

// The slabs of a lane on a CUDA device: the device memory, and the stream on which slabs are
// copied. A thread waits for the copies, polls for slabs that were given back, and reports both.
//
// No stream of this process waits for an event of another process. If that process is killed, the
// event may never pass, and everything behind it on the stream would hang. So the event `finished`
// is polled before a slab is written again.
//
// `ring` must outlive it. Confined to one thread at a time, as every DeviceSlabs.
class CudaSlabs final : public DeviceSlabs {
 public:
  // Throws DeviceFailure, and std::system_error if the thread cannot be started.
  CudaSlabs(const FoundDevice& device, const SlabSettings& settings, const SlabRing& ring,
            DeviceReports reports);
  ~CudaSlabs() override;

  Copying copy(std::uint32_t slab, const SlabShape& shape) override;
  bool give_back(std::uint32_t slab) override;
  void stop() override { waits_.close(); }
  const DeviceHandles* handles() const override { return handles_ ? &*handles_ : nullptr; }
  bool pinned() const override { return !pages_.empty(); }
  std::unique_ptr<DeviceReader> reader(const RowFormat& format) override;

 private:
  struct Slab {
    Event copied, finished;  // shared with the reader
    Event begun, ended;      // begin and end of the copy, by the device's clock
    std::size_t bytes = 0;   // size of the copy under way
    bool timed = false;      // `begun` was recorded
  };
  // A task of the thread.
  struct Wait {
    std::uint32_t slab = 0;
    bool given_back = false;  // true: poll `finished`; false: wait for the copy
  };

  void acquire_resources();
  void make_slabs(unsigned sharing);
  void share();
  void start(Slab& slab, std::uint32_t index);
  CopiedSlabs copied_slabs() const;
  void run();
  void wait_for_copy(std::uint32_t index);
  bool is_finished(std::uint32_t index) const;
  // `repeated`: other slabs have reported this failure.
  void fail(const DeviceFailure& failure, bool repeated = false);
  // Reports it if other slabs found that the device is lost.
  bool has_failed();
  bool is_dead() const;
  void release_resources();
  void abandon();

  const int ordinal_;
  const SlabRing& ring_;
  const DeviceReports reports_;
  std::atomic<bool>& lost_;  // SlabSettings::lost
  Share bytes_;
  std::vector<LockedPages> pages_;  // by slab; empty if they cannot be locked
  Memory memory_;
  Stream stream_;
  std::vector<Slab> slabs_;
  std::optional<DeviceHandles> handles_;
  std::uint64_t copies_ = 0;
  std::atomic<bool> failed_{false};  // and the failure was reported
  Queue<Wait> waits_;
  std::jthread thread_;  // last member: it ends before the others are destroyed
};

}  // namespace millrace::cuda
