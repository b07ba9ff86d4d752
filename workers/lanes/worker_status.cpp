// SPDX-License-Identifier: Apache-2.0
#include "workers/lanes/worker_status.h"

#include <algorithm>

namespace millrace {

std::uint64_t count_of(const Histogram& histogram) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) all += histogram.count(i);
  return all;
}

Duration quantile(const Histogram& histogram, double part) {
  const auto bounds = histogram.bounds();
  double left = part * static_cast<double>(count_of(histogram));
  double below = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const auto count = static_cast<double>(histogram.count(i));
    const auto bound = static_cast<double>(bounds[i]);
    if (count > 0 && left <= count)
      return Duration(static_cast<std::int64_t>(below + (bound - below) * left / count));
    left -= count;
    below = bound;
  }
  return left > 0 ? Duration(bounds.back()) : Duration{};
}

void LostWorkers::add(std::string_view name, std::string_view why, Time now) {
  if (lost_.size() == capacity) lost_.pop_front();
  lost_.push_back({std::string(name), std::string(why), now});
}

const LostWorkers::Lost* LostWorkers::find(std::string_view name) const {
  const auto found = std::find_if(lost_.rbegin(), lost_.rend(),
                                  [&](const Lost& lost) { return lost.name == name; });
  return found == lost_.rend() ? nullptr : &*found;
}

WorkerStatus status_of(const Lane& lane, const Histogram& compute, Time now) {
  const auto& held = lane.held();
  WorkerStatus status;
  status.leaving = lane.leaving();
  status.slots = std::uint64_t{lane.batcher().streams()} + lane.batcher().free_slots();
  status.slots_used = lane.batcher().streams();
  status.credits = lane.credits();
  status.in_flight = held.size();
  status.batches = count_of(compute);
  status.compute_p50 = quantile(compute, 0.5);
  status.compute_p99 = quantile(compute, 0.99);
  if (!held.empty()) status.oldest = now - held.front().closed;
  return status;
}

}  // namespace millrace
