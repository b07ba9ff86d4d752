// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace millrace {

// The samples of the last five minutes of the metrics that the live page plots, so that its plots
// are full when it is opened. At most `most` samples are held: each further one replaces the
// oldest. A sample has about 190 numbers per pipeline. All samples and the text of the last answer
// take about 200 KiB per pipeline. The answer is made once per sample, however often it is
// requested.
//
// Confined to one thread.
class History {
 public:
  static constexpr Duration period = std::chrono::seconds(5);
  // Five minutes, and the window of 10 s before them, for rates.
  static constexpr std::size_t most = 62;

  // True if there is no sample yet, or the last one is a period old.
  bool is_due(Time now) const { return samples_.empty() || now - samples_.back().time >= period; }
  // Adds a sample: `metrics` is the text of /metrics, collected at `now`. If the set of
  // series changes, earlier samples are dropped.
  void add(std::string_view metrics, Time now);

  // {"times":[…],"series":{…}}: the times of collection in seconds of the steady clock, the oldest
  // first, and for each series its values at these times, or one number if all are equal. The name
  // of a series is as in /metrics, with its labels. Valid until the next add().
  const std::string& json();

 private:
  struct Sample {
    Time time;
    std::vector<double> values;  // in the order of series_
  };

  void append_values(std::string& to, std::size_t series) const;

  std::vector<std::string> series_;
  std::deque<Sample> samples_;
  std::string json_;  // empty: to be made
};

}  // namespace millrace
