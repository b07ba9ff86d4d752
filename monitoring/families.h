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

// Metric families as they are collected: one is begun, then gets its metrics.
class Families {
 public:
  void begin_counter(std::string_view name, std::string_view help);
  void begin_gauge(std::string_view name, std::string_view help);
  void begin_histogram(std::string_view name, std::string_view help);

  // To the counter or gauge begun last.
  void add(Labels labels, double value);
  // To the histogram begun last: the sum of histograms with the same bounds, each value divided by
  // `per`, so that it is in the base unit.
  void add(Labels labels, const std::vector<const Histogram*>& shards, double per = 1);

  // In Prometheus' text format.
  std::string text() const;

 private:
  void begin(prometheus::MetricType type, std::string_view name, std::string_view help);

  std::vector<prometheus::MetricFamily> families_;
};

// Times are counted in nanoseconds and told in seconds. Divided: 15e9 * 1e-9 is not 15.
inline constexpr double per_second = 1e9;

// The sum of one counter or gauge of all shards. `which` is a member, or a function that gives it.
template <class Stats, class Which>
double sum(const Shards<Stats>& shards, Which which) {
  double total = 0;
  for (const Stats* shard : shards)
    total += static_cast<double>(std::invoke(which, *shard).value());
  return total;
}

// The same of one cell of many.
template <class Stats, class Cell, class Enum>
double sum_of(const Shards<Stats>& shards, Labelled<Cell, Enum> Stats::*which, Enum value) {
  return sum(shards, [&](const Stats& stats) -> const Cell& { return (stats.*which)[value]; });
}

template <class Stats, class Which>
std::vector<const Histogram*> histograms(const Shards<Stats>& shards, Which which) {
  std::vector<const Histogram*> all;
  for (const Stats* shard : shards) all.push_back(&std::invoke(which, *shard));
  return all;
}

// Adds a metric for each value of the enum from `first` on, divided by `per`.
template <class Stats, class Cell, class Enum>
void add_each(Families& into, const Labels& common, std::string_view key,
              const Shards<Stats>& shards, Labelled<Cell, Enum> Stats::*which, Enum first = Enum{},
              double per = 1) {
  for (const Enum value : values_of<Enum>()) {
    if (value < first) continue;
    Labels labels = common;
    labels.push_back({std::string(key), std::string(name_of(value))});
    into.add(std::move(labels), sum_of(shards, which, value) / per);
  }
}

}  // namespace millrace
