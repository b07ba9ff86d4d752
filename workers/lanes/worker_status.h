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

// An attached worker, as the admin listener lists it.
struct WorkerStatus {
  struct Failure {
    std::string why;
    Duration ago{};
  };
  std::string name;
  bool remote = false;   // on another machine
  bool leaving = false;  // it said Bye
  std::uint64_t slots = 0, slots_used = 0;
  std::uint32_t credits = 0;
  std::uint64_t in_flight = 0;               // batches handed over and not done
  std::uint64_t batches = 0;                 // done
  Duration compute_p50{}, compute_p99{};     // batch taken to batch done, since it attached
  Duration oldest{};                         // age of the oldest batch in flight; 0 without one
  Duration attached{};                       // for so long
  std::optional<Failure> last_failure = {};  // of a worker of this name, if it is remembered
};

// The workers that were lost last, and why. Confined to one thread.
class LostWorkers {
 public:
  static constexpr std::size_t most = 64;  // that are remembered

  struct Lost {
    std::string name;
    std::string why;
    Time at;
  };

  void add(std::string_view name, std::string_view why, Time now);
  // The last one of this name; null if none is remembered.
  const Lost* find(std::string_view name) const;

 private:
  std::deque<Lost> lost_;
};

// What a lane and the compute times of its batches tell: all of a worker's status but its name,
// where it is, since when, and its last failure.
WorkerStatus status_of(const Lane& lane, const Histogram& compute, Time now);

// How many values were observed.
std::uint64_t count_of(const Histogram& histogram);
// The value that this part of all that was observed is not above, interpolated in its bucket; of
// those beyond the last bound, that bound. 0 where nothing was observed.
Duration quantile(const Histogram& histogram, double part);

}  // namespace millrace
