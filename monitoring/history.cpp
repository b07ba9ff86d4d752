// SPDX-License-Identifier: Apache-2.0
#include "monitoring/history.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

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

std::string text_of(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

// As a string of JSON. The text format of Prometheus has no control characters within a line.
std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + '"';
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
  std::string times, series;
  for (const Sample& sample : samples_) {
    const std::chrono::duration<double> time = sample.time.time_since_epoch();
    times.append(times.empty() ? "" : ",").append(text_of(time.count()));
  }
  for (std::size_t i = 0; !samples_.empty() && i < series_.size(); ++i)
    series.append(i == 0 ? "" : ",").append(in_quotes(series_[i]) + ":" + values_of(i));
  return json_ = "{\"times\":[" + times + "],\"series\":{" + series + "}}\n";
}

std::string History::values_of(std::size_t series) const {
  const double first = samples_.front().values[series];
  if (std::ranges::all_of(samples_, [&](const auto& one) { return one.values[series] == first; }))
    return text_of(first);
  std::string values;
  for (const Sample& sample : samples_)
    values.append(values.empty() ? "[" : ",").append(text_of(sample.values[series]));
  return values + "]";
}

}  // namespace millrace
