// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "monitoring/sources.h"
#include "recording/writer/stats.h"
#include "recording/writer/upkeep.h"
#include "service/config/options.h"
#include "service/log/log_writer.h"
#include "service/recorder/recorder_log.h"

namespace millrace {

// The upkeep of [recording] directory, with its log and its counters. It runs also if nothing is
// recorded any more: old recordings are deleted nevertheless.
class RecordingUpkeep {
 public:
  // `writer` must outlive it.
  RecordingUpkeep(const RecordingOptions& options, recording::Upkeep::Beside beside,
                  LogWriter& writer);

  void sealed(recording::FileNumber file) { upkeep_.sealed(file); }
  void add_to(Sources& sources) const;

 private:
  RecorderLog log_;
  recording::RecordingStats stats_;
  recording::Upkeep upkeep_;
};

}  // namespace millrace
