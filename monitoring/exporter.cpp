// SPDX-License-Identifier: Apache-2.0
#include "monitoring/exporter.h"

#include "monitoring/collect.h"
#include "monitoring/families.h"

namespace millrace {

const std::string& Exporter::text(Time now) {
  using namespace std::chrono_literals;
  if (!text_.empty() && now < collected_ + 1s) return text_;
  text_ = fresh_text(now);
  collected_ = now;
  return text_;
}

std::string Exporter::fresh_text(Time now) const {
  Families families;
  if (sources_.training.empty()) collect_streaming(now, families);
  collect_training(sources_, families);
  collect_service(sources_, families);
  collect_process(families);
  return families.text();
}

void Exporter::collect_streaming(Time now, Families& families) const {
  collect_transports(sources_, families);
  collect_streams(sources_.pipelines, families);
  collect_batches(sources_.pipelines, families);
  collect_devices(sources_, families);
  collect_workers(sources_.pipelines, now, families);
  collect_recording(sources_, families);
}

}  // namespace millrace
