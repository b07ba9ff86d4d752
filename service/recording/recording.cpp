// SPDX-License-Identifier: Apache-2.0
#include "service/recording/recording.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "service/log/wall_clock.h"

namespace millrace {

namespace {

recording::RecorderSettings settings(const RecordingOptions& options) {
  return {.directory = options.directory,
          .segment = options.segment,
          .commit = options.commit,
          .min_free = options.min_free,
          .lock_wait = std::chrono::seconds(5),
          .wall = wall_clock};
}

std::size_t longest_frame(const Options& options) {
  std::size_t bytes = 1;
  for (const PipelineOptions& pipeline : options.pipelines)
    bytes = std::max(bytes, pipeline.frames.bytes());
  return bytes;
}

}  // namespace

bool records(const Options& options) {
  return std::ranges::any_of(options.pipelines,
                             [](const auto& pipeline) { return pipeline.record.has_value(); });
}

Recording::Recording(const Options& options, LogWriter& writer, Log& log,
                     std::function<void()> ended)
    : upkeep_log_(writer),
      recorder_log_(writer, [this](recording::FileNumber file) { upkeep_.sealed(file); }),
      pages_(options.recording.queue, options.listen.threads, longest_frame(options)),
      recorder_(settings(options.recording), pages_, recorder_stats_, recorder_log_),
      next_stream_(recorder_.series().next_stream()),
      upkeep_(options.recording.directory,
              {.keep = options.recording.keep, .keep_for = options.recording.keep_for}, wall_clock,
              upkeep_stats_, upkeep_log_) {
  const recording::SegmentSeries& series = recorder_.series();
  // The service, or the removal, may have been killed before a file was rewritten without removed
  // streams. The upkeep does nothing if no stream was removed.
  for (const recording::FileNumber file : series.directory().list())
    if (file < series.number()) upkeep_.sealed(file);
  log.info("recording", {{"directory", options.recording.directory},
                         {"file", recording::Directory::file_name(series.number())},
                         {"first_stream", std::to_string(series.next_stream())}});
  for (std::size_t i = 0; i < options.listen.threads; ++i)
    parts_.push_back(
        std::make_unique<ThreadRecording>(pages_, i, next_stream_, options.recording.commit));
  thread_.emplace(recorder_, pages_, std::move(ended));
}

void Recording::add_to(Sources& sources) const {
  sources.recorder = {&recorder_stats_, &upkeep_stats_};
  for (const auto& part : parts_) sources.taps.push_back(&part->stats());
  sources.threads.push_back(&recorder_log_.stats());
  sources.threads.push_back(&upkeep_log_.stats());
}

}  // namespace millrace
