// SPDX-License-Identifier: Apache-2.0
#include "service/recording/recording_upkeep.h"

#include "service/log/wall_clock.h"

namespace millrace {

RecordingUpkeep::RecordingUpkeep(const RecordingOptions& options, recording::Upkeep::Beside beside,
                                 LogWriter& writer)
    : log_(writer),
      upkeep_(options.directory, beside, {.keep = options.keep, .keep_for = options.keep_for},
              wall_clock, stats_, log_) {}

void RecordingUpkeep::add_to(Sources& sources) const {
  sources.recorder.push_back(&stats_);
  sources.threads.push_back(&log_.stats());
}

}  // namespace millrace
