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

// A lane's slabs, on the host and again on the device, and the stream on which they are copied. A
// thread waits for what the device does, and reports it.
//
// No stream of this process ever waits for another process: what that recorded may never pass when
// it is killed, and everything behind it would hang. So `finished` is asked before a slab is
// written again.
class CudaSlabs final : public DeviceSlabs {
 public:
  // Throws DeviceFailure, and std::system_error where there is no thread to be had.
  CudaSlabs(const Found& device, const SlabSettings& settings, const SlabRing& ring,
            DeviceReports reports);
  ~CudaSlabs() override;

  Copying copy(std::uint32_t slab, const SlabShape& shape) override;
  bool give_back(std::uint32_t slab) override;
  void stop() override { waits_.close(); }
  const DeviceHandles* handles() const override { return handles_ ? &*handles_ : nullptr; }
  bool pinned() const override { return pages_ != nullptr; }
  std::unique_ptr<DeviceReader> reader(const RowFormat& format) override;

 private:
  struct Slab {
    Event copied, finished;  // for whoever reads it
    Event begun, ended;      // for us: the copy, by the device's clock
    std::size_t bytes = 0;   // of the copy under way
    bool timed = false;
  };
  // What the thread is to wait for.
  struct Wait {
    std::uint32_t slab = 0;
    bool given_back = false;  // for `finished`; otherwise for the copy
  };

  void take();
  void make_slabs(unsigned sharing);
  void share();
  void start(Slab& slab, std::uint32_t index);
  CopiedSlabs copied_slabs() const;
  void run();
  void wait_for_copy(std::uint32_t index);
  bool is_finished(std::uint32_t index) const;
  // `told`: by others already.
  void fail(const DeviceFailure& failure, bool told = false);
  bool gone();
  bool is_dead() const;
  void give_back();
  void abandon();

  const int ordinal_;
  const SlabRing& ring_;
  const DeviceReports reports_;
  std::atomic<bool>& lost_;  // the device, for everybody
  Share bytes_;
  LockedPages pages_;  // null: they could not be locked
  Memory memory_;
  Stream stream_;
  std::vector<Slab> slabs_;
  std::optional<DeviceHandles> handles_;
  std::uint64_t copies_ = 0;
  std::atomic<bool> failed_{false};  // and it was reported
  Queue<Wait> waits_;
  std::jthread thread_;  // the last: it ends before what it uses
};

}  // namespace millrace::cuda
