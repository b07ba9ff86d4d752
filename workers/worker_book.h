// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/stats.h"
#include "base/time.h"
#include "workers/lanes.h"

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

// What is told of each worker of a pipeline beyond what its lane knows, and of those that were
// lost last. Confined to the pipeline's home thread.
class WorkerBook {
 public:
  static constexpr std::size_t most_failures = 64;  // that are remembered

  void attached(LaneId lane, std::string_view name, bool remote, Time now);
  // A batch was done, that was computed for so long. A lane that is not known is ignored.
  void done(LaneId lane, Duration compute);
  void left(LaneId lane);
  void lost(LaneId lane, std::string_view why, Time now);

  // The workers of these lanes, of `slots` slots each.
  std::vector<WorkerStatus> list(const Lanes& lanes, std::uint64_t slots, Time now) const;

 private:
  struct Entry {
    std::string name;
    bool remote = false;
    Time attached;
    Histogram compute{buckets::fast};
  };
  struct Failure {
    std::string name;
    std::string why;
    Time at;
  };

  const Failure* last_failure(std::string_view name) const;

  std::map<LaneId, Entry> entries_;
  std::deque<Failure> failures_;
};

// How many values were observed.
std::uint64_t count_of(const Histogram& histogram);
// The value that this part of all that was observed is not above, interpolated in its bucket; of
// those beyond the last bound, that bound. 0 where nothing was observed.
Duration quantile(const Histogram& histogram, double part);

}  // namespace millrace
