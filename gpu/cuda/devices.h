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

// Which devices batches may be copied to, and how much of their memory slabs may use.
struct DeviceRule {
  enum class Use : std::uint8_t {
    automatic,  // all devices of the machine
    host,       // no device: batches stay in host memory
    listed,     // those in `listed`; each of them must exist
  };
  Use use = Use::automatic;
  std::vector<std::string> listed = {};               // cuda:N or UUIDs
  std::uint64_t slab_bytes = std::uint64_t{1} << 30;  // limit for slabs on each device, in bytes
  // True: a worker whose slabs cannot be locked in memory copies them itself. False: it is refused.
  bool pageable = true;

  bool operator==(const DeviceRule&) const = default;
};

struct DeviceError {
  std::string message;  // one line for people: the device and the reason, or the allowed devices
};

// The device of this machine with this name: cuda:N in the numbering of this process, or cuda, the
// first one. Creates no context. Throws DeviceFailure, whose what() names the available devices.
cuda::FoundDevice find_device(std::string_view name);

// The devices of this process, and the limit of the slabs' memory on each. It must outlive the
// devices that it opens, and their slabs.
//
// Thread-safe. Each device that it opens is confined to one thread.
class Devices {
 public:
  // Only the host.
  Devices() : Devices(DeviceRule{.use = DeviceRule::Use::host}) {}
  // Opens the listed devices at once, which may take seconds. Other devices are opened when they
  // are first used. Throws DeviceFailure if a listed device does not exist, is listed twice or
  // cannot be used; its what() is one line for people.
  explicit Devices(const DeviceRule& rule);

  // True if open() does not wait for the driver. True also for the host, for unknown names and for
  // devices that have failed.
  bool is_ready(std::string_view name) const;
  // Makes the device ready if it is not, which may take seconds. Throws DeviceFailure.
  void make_ready(std::string_view name);

  // Opens the device of a worker by the name in its Hello: `host`, `cuda:N` as this process counts
  // devices, or a UUID. A CUDA device that is not usable here becomes a device to which the worker
  // copies (open_device_of_worker), unless devices are listed. DeviceError: the name is not
  // allowed, or the device has failed. Throws DeviceFailure.
  Result<std::unique_ptr<Device>, DeviceError> open(std::string_view name);

  // True if a worker whose slabs cannot be locked in memory may copy them itself.
  bool allows_pageable() const { return rule_.pageable; }
  // True if a worker whose device cannot be used by this process may copy its slabs itself.
  bool lets_worker_copy() const { return rule_.use != DeviceRule::Use::listed; }

  // Limits the memory of slabs on each device to `bytes`. Existing slabs stay.
  void set_slab_bytes(std::uint64_t bytes) {
    for (State& state : states_) state.memory.set_limit(bytes);
  }

  // Records that the device has failed: open() returns an error for it from now on.
  void mark_lost(std::size_t device_index) {
    states_[device_index].lost.store(true, std::memory_order_relaxed);
  }

  // The index in usable() of a device, by `cuda:N` or UUID; nullopt if it is not there.
  std::optional<std::size_t> find(std::string_view name) const;
  // The devices that batches may be copied to: in the driver's order, or in the order of `listed`.
  const std::vector<cuda::FoundDevice>& usable() const { return usable_; }
  // The reason why the machine has no usable CUDA device; empty if it has one or the rule uses only
  // the host.
  const std::string& why_none() const { return why_none_; }

 private:
  Result<std::unique_ptr<Device>, DeviceError> open(std::size_t device_index);

  const DeviceRule rule_;
  std::vector<cuda::FoundDevice> usable_;
  std::string why_none_;
  struct State {
    explicit State(std::uint64_t bytes) : memory(bytes) {}
    Budget memory;                                // for slabs, in bytes
    std::atomic<bool> ready{false}, lost{false};  // has a context, has failed
  };
  std::deque<State> states_;  // by index in usable_
};

}  // namespace millrace
