// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/stats.h"
#include "base/time.h"
#include "workers/lanes/lane.h"

namespace millrace {

// An attached worker, as the admin listener shows it.
struct WorkerStatus {
  struct Failure {
    std::string why;
    Duration ago{};
  };
  std::string name;
  bool remote = false;   // on another machine
  bool leaving = false;  // it sent Bye
  std::uint64_t slots = 0, slots_used = 0;
  std::uint32_t credits = 0;
  std::uint64_t in_flight = 0;            // batches that are handed over and not done
  std::uint64_t batches = 0;              // batches that are done
  Duration compute_p50{}, compute_p99{};  // from batch taken to batch done, since it attached
  Duration oldest{};                      // age of the oldest batch in flight; 0 without batches
  Duration attached{};                    // time since it attached
  std::optional<Failure> last_failure =
      {};  // last failure of a worker with this name, if it is remembered
};

// The workers that were lost last, with the reasons. Confined to one thread.
class LostWorkers {
 public:
  static constexpr std::size_t capacity = 64;  // losses that are remembered; the oldest is dropped

  struct Lost {
    std::string name;
    std::string why;
    Time at;
  };

  void add(std::string_view name, std::string_view why, Time now);
  // The last loss of a worker with this name; null if none is remembered. Valid until add().
  const Lost* find(std::string_view name) const;

 private:
  std::deque<Lost> lost_;
};

// The status of a lane's worker, without `name`, `remote`, `attached` and `last_failure`. `compute`
// holds the compute times of its batches.
WorkerStatus status_of(const Lane& lane, const Histogram& compute, Time now);

// The number of observed values.
std::uint64_t count_of(const Histogram& histogram);
// The quantile `part` of the observed values (0.5: the median), interpolated within its bucket. If
// it is above the last bound, the last bound. 0 without values.
Duration quantile(const Histogram& histogram, double part);

}  // namespace millrace
