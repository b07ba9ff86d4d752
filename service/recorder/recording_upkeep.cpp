// SPDX-License-Identifier: Apache-2.0
#include "service/recorder/recording_upkeep.h"

#include <algorithm>
#include <cstdint>

#include "service/log/wall_clock.h"

namespace millrace {

namespace {

// Enough for the next recording file while the present one is full.
std::uint64_t spare_of(const RecordingOptions& options) {
  return std::max<std::uint64_t>(2 * options.file_size, 16 << 20);
}

}  // namespace

RecordingUpkeep::RecordingUpkeep(const RecordingOptions& options, recording::Upkeep::Beside beside,
                                 LogWriter& writer)
    : log_(writer),
      upkeep_(options.directory, beside,
              {.keep = options.keep,
               .keep_for = options.keep_for,
               .min_free = options.min_free,
               .spare = beside == recording::Upkeep::Beside::recorder ? spare_of(options) : 0},
              wall_clock, stats_, log_) {}

void RecordingUpkeep::add_to(Sources& sources) const {
  sources.recorder.push_back(&stats_);
  sources.threads.push_back(&log_.stats());
}

}  // namespace millrace
