// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/metric_family.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stats.h"
#include "monitoring/sources.h"

namespace millrace {

using Labels = std::vector<prometheus::ClientMetric::Label>;

// Collects metric families. Begin a family, then add its metrics. Confined to one thread.
class Families {
 public:
  void begin_counter(std::string_view name, std::string_view help);
  void begin_gauge(std::string_view name, std::string_view help);
  void begin_histogram(std::string_view name, std::string_view help);

  // Adds a metric to the counter or gauge begun last.
  void add(Labels labels, double value);
  // Adds the sum of `shards` to the histogram begun last. All of them must have the same bounds.
  // Bounds and sum are divided by `per`, which converts them to the base unit.
  void add(Labels labels, const std::vector<const Histogram*>& shards, double per = 1);

  // All families in Prometheus' text format.
  std::string text() const;

 private:
  void begin(prometheus::MetricType type, std::string_view name, std::string_view help);

  std::vector<prometheus::MetricFamily> families_;
};

// Converts nanoseconds to seconds by division: 15e9 * 1e-9 is not exactly 15.
inline constexpr double per_second = 1e9;

// Sums one counter or gauge over all shards. `which` is a member, or a function that returns it.
template <class Stats, class Which>
double sum(const Shards<Stats>& shards, Which which) {
  double total = 0;
  for (const Stats* shard : shards)
    total += static_cast<double>(std::invoke(which, *shard).value());
  return total;
}

// Sums the cell `value` of a labelled counter or gauge over all shards. The member may be one of a
// base of Stats.
template <class Stats, class Of, class Cell, class Enum>
double sum_of(const Shards<Stats>& shards, Labelled<Cell, Enum> Of::*which, Enum value) {
  return sum(shards, [&](const Stats& stats) -> const Cell& { return (stats.*which)[value]; });
}

template <class Stats, class Which>
std::vector<const Histogram*> histograms(const Shards<Stats>& shards, Which which) {
  std::vector<const Histogram*> all;
  for (const Stats* shard : shards) all.push_back(&std::invoke(which, *shard));
  return all;
}

// Adds a metric for each value of the enum from `first` on, divided by `per`.
template <class Stats, class Of, class Cell, class Enum>
void add_each(Families& into, const Labels& common, std::string_view key,
              const Shards<Stats>& shards, Labelled<Cell, Enum> Of::*which, Enum first = Enum{},
              double per = 1) {
  for (const Enum value : values_of<Enum>()) {
    if (value < first) continue;
    Labels labels = common;
    labels.push_back({std::string(key), std::string(name_of(value))});
    into.add(std::move(labels), sum_of(shards, which, value) / per);
  }
}

}  // namespace millrace
