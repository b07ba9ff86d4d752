// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/time.h"
#include "monitoring/sources.h"

namespace millrace {

// What Prometheus reads at /metrics: the counters of all stages under the names of
// docs/metrics.md, with every label value from the start, and what the system says of the
// process. It only reads; the stages neither wait for it nor know it.
//
// Confined to one thread, which need not be one that counts.
class Exporter {
 public:
  explicit Exporter(Sources sources) : sources_(std::move(sources)) {}

  // In Prometheus' text format. At most a second old: a scraper, however eager, costs one
  // collection per second. Valid until the next call.
  const std::string& text(Time now);
  // The next text is collected anew.
  void forget() { text_.clear(); }

  // When the text was collected.
  Time collected() const { return collected_; }

  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

 private:
  Sources sources_;
  std::string text_;
  Time collected_;
};

}  // namespace millrace
