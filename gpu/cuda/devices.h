// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/result.h"
#include "gpu/cuda/cuda.h"
#include "gpu/host/device.h"

namespace millrace {

// Which devices batches may be laid on, and with how much of their memory.
struct DeviceRule {
  enum class Use : std::uint8_t {
    automatic,  // all that the machine has
    host,       // none
    listed,     // these, which must be there
  };
  Use use = Use::automatic;
  std::vector<std::string> listed = {};               // cuda:N, or a UUID
  std::uint64_t slab_bytes = std::uint64_t{1} << 30;  // of each device's memory
  bool pageable = true;  // where the pages of slabs cannot be locked, leave copies to the worker

  bool operator==(const DeviceRule&) const = default;
};

struct DeviceError {
  std::string message;  // a sentence that names the device and those there are
};

// The devices of this process.
//
// Thread-safe; what it opens is confined to one thread each.
class Devices {
 public:
  // The host alone.
  Devices() : Devices(DeviceRule{.use = DeviceRule::Use::host}) {}
  // Listed devices are opened at once, which takes their drivers some time; others when the first
  // worker asks. Throws DeviceFailure with a sentence where a listed one is not there, or is listed
  // twice.
  explicit Devices(const DeviceRule& rule);

  // Whether open() needs no wait for a driver: for this name, for all.
  bool is_ready(std::string_view name) const;
  bool all_ready() const;
  // Takes as long as the driver does with a device that is not ready. Throws DeviceFailure.
  void make_ready(std::string_view name);

  // The device of a worker, by the name in its Hello: host, cuda:N as this process counts them, or
  // a UUID. One that is the worker's own affair, because this process uses none or has no such,
  // is a device of the worker's. Throws DeviceFailure.
  Result<std::unique_ptr<Device>, DeviceError> open(std::string_view name);

  // Whether a worker whose slabs cannot be locked in memory is let copy itself, too.
  bool goes_without_locked_pages() const { return rule_.pageable; }
  // Whether a worker whose device cannot be used here is let copy itself.
  bool leaves_to_worker() const { return rule_.use != DeviceRule::Use::listed; }

  // Limits the memory of new slabs on each device. Existing slabs stay.
  void set_slab_bytes(std::uint64_t bytes) {
    for (At& at : at_) at.memory.set_limit(bytes);
  }

  // It has failed, and is not opened any more: a process that goes on with it gets errors at best.
  void give_up(std::size_t place) { at_[place].lost.store(true, std::memory_order_relaxed); }

  // Its place among usable().
  std::optional<std::size_t> find(std::string_view name) const;
  // Those that batches may be laid on, in the driver's order.
  const std::vector<cuda::Found>& usable() const { return usable_; }
  // Why there are none, where the rule would take some; empty otherwise.
  const std::string& why_none() const { return why_none_; }

 private:
  Result<std::unique_ptr<Device>, DeviceError> open(std::size_t place);

  const DeviceRule rule_;
  std::vector<cuda::Found> usable_;
  std::string why_none_;
  struct At {
    explicit At(std::uint64_t bytes) : memory(bytes) {}
    Budget memory;
    std::atomic<bool> ready{false}, lost{false};
  };
  std::deque<At> at_;  // of those
};

}  // namespace millrace
