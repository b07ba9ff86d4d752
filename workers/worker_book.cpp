// SPDX-License-Identifier: Apache-2.0
#include "workers/worker_book.h"

#include <algorithm>
#include <utility>

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

void WorkerBook::attached(LaneId lane, std::string_view name, bool remote, Time now) {
  Entry& entry = entries_[lane];
  entry.name = name;
  entry.remote = remote;
  entry.attached = now;
}

void WorkerBook::done(LaneId lane, Duration compute) {
  if (const auto entry = entries_.find(lane); entry != entries_.end())
    entry->second.compute.observe(compute);
}

void WorkerBook::left(LaneId lane) { entries_.erase(lane); }

void WorkerBook::lost(LaneId lane, std::string_view why, Time now) {
  const auto entry = entries_.find(lane);
  if (entry == entries_.end()) return;
  if (failures_.size() == most_failures) failures_.pop_front();
  failures_.push_back({std::move(entry->second.name), std::string(why), now});
  entries_.erase(entry);
}

const WorkerBook::Failure* WorkerBook::last_failure(std::string_view name) const {
  const auto found = std::find_if(failures_.rbegin(), failures_.rend(),
                                  [&](const Failure& failure) { return failure.name == name; });
  return found == failures_.rend() ? nullptr : &*found;
}

std::vector<WorkerStatus> WorkerBook::list(const Lanes& lanes, std::uint64_t slots,
                                           Time now) const {
  std::vector<WorkerStatus> all;
  for (const auto& [id, entry] : entries_) {
    const auto found = lanes.lanes().find(id);
    if (found == lanes.lanes().end()) continue;
    const Lane& lane = found->second;
    WorkerStatus& status = all.emplace_back();
    status.name = entry.name;
    status.remote = entry.remote;
    status.leaving = lane.leaving();
    status.slots = slots;
    status.slots_used = lane.batcher().streams();
    status.credits = lane.credits();
    status.in_flight = lane.held().size();
    status.batches = count_of(entry.compute);
    status.compute_p50 = quantile(entry.compute, 0.5);
    status.compute_p99 = quantile(entry.compute, 0.99);
    if (!lane.held().empty()) status.oldest = now - lane.held().front().closed;
    status.attached = now - entry.attached;
    if (const Failure* failure = last_failure(entry.name))
      status.last_failure = {failure->why, now - failure->at};
  }
  return all;
}

}  // namespace millrace
