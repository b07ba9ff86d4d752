// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/budget.h"
#include "base/result.h"
#include "gpu/devices.h"
#include "schemas/worker_messages.h"
#include "workers/lane_feed.h"
#include "workers/stats.h"

namespace millrace {

// Where slabs come from: the devices of the process, and the bytes that all slabs on the host may
// have. Both outlive whoever takes of them.
struct SlabSupply {
  Devices& devices;
  Budget& bytes;
};

// What a worker is fed from.
struct Feed {
  std::unique_ptr<LaneFeed> lane;
  std::uint64_t number = 0;  // reports of others are not about it
  Share bytes;
  bool pageable = false;      // its pages could not be locked, for the device
  std::string why_it_copies;  // the worker, from the slabs of the host; empty: it does not have to
};

// What the device of a feed reported.
struct FeedReport {
  std::uint64_t feed = 0;  // its number
  std::size_t device = 0;  // its place among Devices::usable()
  DeviceReport what;
};

// Makes the slabs of a pipeline's workers, on the devices that they name. Confined to one thread.
class Feeds {
 public:
  // Gets reports on threads of devices. Thread-safe.
  using Report = std::function<void(FeedReport)>;

  // `stats` outlive it.
  Feeds(const FeedShape& shape, SlabSupply supply, LaneStats& stats, Report report);

  // For a worker on this machine, or else one that is sent its tensors. `no_device` as in
  // Hub::hello. Throws where memory or descriptors are short.
  [[nodiscard]] Result<Feed, worker_protocol::Refused> make(
      const worker_protocol::Hello& hello, const std::optional<DeviceFailure>& no_device, bool here,
      LaneFeed::Hand hand);

  // The worker copies from now on. False: it does so already, or computes on the host.
  bool leave_copies_to_worker(Feed& feed, const std::string& why);

  void count(const FeedReport& report);

 private:
  void note(std::string_view device, const DeviceFailure& failure);
  [[nodiscard]] Result<Feed, worker_protocol::Refused> make(std::unique_ptr<Device> device,
                                                            std::uint32_t credits, bool here,
                                                            LaneFeed::Hand hand);

  const FeedShape shape_;
  const SlabSupply supply_;
  LaneStats& stats_;
  const Report report_;
  std::uint64_t next_ = 1;
};

}  // namespace millrace
