// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/time.h"
#include "monitoring/sources.h"

namespace millrace {

class Families;

// The text of /metrics: the counters of all stages under the names of docs/metrics.md, with every
// label value from the start, and the process_* figures of the system. It only reads the counters,
// and blocks no thread that writes them.
//
// Confined to one thread, which need not write any counter.
class Exporter {
 public:
  explicit Exporter(Sources sources) : sources_(std::move(sources)) {}

  // In Prometheus' text format, at most 1 s old: the metrics are collected at most once a second,
  // however often they are scraped. Valid until the next call.
  const std::string& text(Time now);
  // The same text, collected now. text() does not return it later.
  std::string fresh_text(Time now) const;
  // Discards the text, so that the next call of text() collects again.
  void forget() { text_.clear(); }

  // When the current text was collected.
  Time collected() const { return collected_; }

  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

 private:
  // The families of the service for streams.
  void collect_streaming(Time now, Families& families) const;

  Sources sources_;
  std::string text_;
  Time collected_;
};

}  // namespace millrace
