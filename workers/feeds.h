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
#include "gpu/devices.h"
#include "schemas/worker_messages.h"
#include "workers/lane_feed.h"
#include "workers/protocol.h"
#include "workers/slab_threads.h"
#include "workers/stats.h"

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

// What a worker is fed from.
struct Feed {
  std::unique_ptr<LaneFeed> lane;
  std::uint64_t number = 0;           // reports of other numbers are not about it
  std::optional<std::size_t> thread;  // of SlabThreads, on which it was made and is to be freed
  Share bytes;
  bool pageable = false;      // its pages could not be locked, for the device
  std::string why_it_copies;  // the worker, from the slabs of the host; empty: it does not have to
};

// The slabs on the device of a worker that copies from now on are gone.
struct FormerSlabsGone {};

// What was reported of a feed.
struct FeedReport {
  std::uint64_t feed = 0;  // its number
  std::size_t device = 0;  // its place among Devices::usable()
  std::variant<CopyEnded, SlabFreed, DeviceLost, FormerSlabsGone> what;
};

// A feed that is to be made.
struct FeedOrder {
  std::uint64_t number = 0;  // of the order, for whoever placed it
  std::string device;        // as in Hello
  std::uint32_t credits = 0;
  bool here = true;  // the worker is on this machine; otherwise its tensors are sent
  // Set if the worker is gone: nothing has to be made.
  std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
};

// What became of an order.
struct MadeFeed {
  std::uint64_t order = 0;
  Result<Feed, worker_protocol::Refused> feed;
  std::optional<std::size_t> device = {};     // its place among Devices::usable()
  std::optional<DeviceFailure> failure = {};  // of the device, also if the worker copies instead
};

// Makes the slabs of a pipeline's workers, on the devices that they name, and frees them: both on
// SlabThreads. Confined to one thread, but for what it says.
class Feeds {
 public:
  // Both are called on threads of SlabThreads and of devices.
  struct Calls {
    std::function<void(FeedReport)> report;
    std::function<void(MadeFeed)> made;
  };

  // `stats` outlive it. It outlives the run of the threads.
  Feeds(const FeedShape& shape, SlabSupply supply, LaneStats& stats, Calls calls);

  // Calls `made` later. Throws std::bad_alloc.
  void make(FeedOrder order);
  // Frees it later. Its bytes count until then.
  void free(Feed feed) noexcept;

  // Counts the failure of a device over an order; one that the device does not survive is reported.
  void note(const MadeFeed& made);
  void count(const FeedReport& report);

  // The worker copies from now on. False: it does so already, or computes on the host.
  bool leave_copies_to_worker(Feed& feed, const std::string& why);

 private:
  [[nodiscard]] MadeFeed fill(const FeedOrder& order);
  [[nodiscard]] Result<Feed, worker_protocol::Refused> fill(const FeedOrder& order,
                                                            std::optional<DeviceFailure>& failed);
  [[nodiscard]] Result<Feed, worker_protocol::Refused> fill(std::unique_ptr<Device> device,
                                                            const FeedOrder& order);

  const FeedShape shape_;
  const SlabSupply supply_;
  LaneStats& stats_;
  const Calls calls_;
  std::atomic<std::uint64_t> next_{1};
};

}  // namespace millrace
