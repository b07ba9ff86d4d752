// SPDX-License-Identifier: Apache-2.0
#include "monitoring/families.h"

#include <prometheus/text_serializer.h>

#include <cassert>
#include <cstdint>
#include <utility>

namespace millrace {

using prometheus::ClientMetric;
using prometheus::MetricType;

void Families::begin_counter(std::string_view name, std::string_view help) {
  begin(MetricType::Counter, name, help);
}

void Families::begin_gauge(std::string_view name, std::string_view help) {
  begin(MetricType::Gauge, name, help);
}

void Families::begin_histogram(std::string_view name, std::string_view help) {
  begin(MetricType::Histogram, name, help);
}

void Families::begin(MetricType type, std::string_view name, std::string_view help) {
  families_.push_back({std::string(name), std::string(help), type, {}});
}

void Families::add(Labels labels, double value) {
  assert(!families_.empty() && families_.back().type != MetricType::Histogram);
  ClientMetric& metric = families_.back().metric.emplace_back();
  metric.label = std::move(labels);
  if (families_.back().type == MetricType::Counter)
    metric.counter.value = value;
  else
    metric.gauge.value = value;
}

void Families::add(Labels labels, const std::vector<const Histogram*>& shards, double per) {
  assert(!families_.empty() && families_.back().type == MetricType::Histogram);
  ClientMetric& metric = families_.back().metric.emplace_back();
  metric.label = std::move(labels);
  if (shards.empty()) return;
  const auto bounds = shards.front()->bounds();
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    for (const Histogram* shard : shards) count += shard->count(i);
    // The last bucket is the sample count, which the serializer writes as +Inf.
    if (i < bounds.size())
      metric.histogram.bucket.push_back({count, static_cast<double>(bounds[i]) / per});
  }
  metric.histogram.sample_count = count;
  for (const Histogram* shard : shards)
    metric.histogram.sample_sum += static_cast<double>(shard->sum()) / per;
}

std::string Families::text() const { return prometheus::TextSerializer().Serialize(families_); }

}  // namespace millrace
