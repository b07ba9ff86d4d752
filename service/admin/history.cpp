// SPDX-License-Identifier: Apache-2.0
#include "service/admin/history.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include "schemas/json_text.h"

namespace millrace {

namespace {

// The beginnings of the names of the samples that the live page reads (service/admin/live_page).
// With process_start_time_seconds it recognises a restart.
constexpr std::array<std::string_view, 14> kept{
    "millrace_batch_frames_padded_total",
    "millrace_batch_frames_total",
    "millrace_batch_rows_count",
    "millrace_batch_rows_sum",
    "millrace_batches_total",
    "millrace_ingest_audio_seconds_total",
    "millrace_queue_wait_seconds",
    "millrace_result_latency_seconds",
    "millrace_slots",
    "millrace_stream_resets_total",
    "millrace_streams{",
    "millrace_workers{",
    "process_cpu_seconds_total",
    "process_start_time_seconds",
};

bool is_kept(std::string_view line) {
  return std::ranges::any_of(kept,
                             [line](std::string_view begin) { return line.starts_with(begin); });
}

}  // namespace

void History::add(std::string_view metrics, Time now) {
  std::vector<std::string> series;
  Sample sample{now, {}};
  while (!metrics.empty()) {
    const std::string_view line = metrics.substr(0, metrics.find('\n'));
    metrics.remove_prefix(std::min(metrics.size(), line.size() + 1));
    if (!is_kept(line)) continue;
    const std::size_t space = line.rfind(' ');
    double value = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    series.emplace_back(line.substr(0, space));
    sample.values.push_back(value);
  }
  if (series != series_) {
    series_ = std::move(series);
    samples_.clear();
  }
  if (samples_.size() == most) samples_.pop_front();
  samples_.push_back(std::move(sample));
  json_.clear();
}

const std::string& History::json() {
  if (!json_.empty()) return json_;
  std::string json = R"({"times":[)";
  for (const Sample& sample : samples_) {
    const std::chrono::duration<double> time = sample.time.time_since_epoch();
    append_number(json += &sample == &samples_.front() ? "" : ",", time.count());
  }
  json += R"(],"series":{)";
  for (std::size_t i = 0; !samples_.empty() && i < series_.size(); ++i) {
    append_string(json += i == 0 ? "" : ",", series_[i]);
    append_values(json += ':', i);
  }
  json += "}}\n";
  return json_ = std::move(json);
}

void History::append_values(std::string& to, std::size_t series) const {
  const double first = samples_.front().values[series];
  if (std::ranges::all_of(samples_, [&](const auto& one) { return one.values[series] == first; }))
    return append_number(to, first);
  std::string_view before = "[";
  for (const Sample& sample : samples_)
    append_number(to += std::exchange(before, ","), sample.values[series]);
  to += ']';
}

}  // namespace millrace
