// SPDX-License-Identifier: Apache-2.0
#include "service/recorder/recording.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "service/log/wall_clock.h"

namespace millrace {

namespace {

recording::RecorderSettings settings(const RecordingOptions& options) {
  return {.directory = options.directory,
          .file_size = options.file_size,
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
    : upkeep_(options.recording, recording::Upkeep::Beside::recorder, writer),
      recorder_log_(
          writer, [this](recording::FileNumber file) { upkeep_.sealed(file); },
          // Relaxed: only the number counts.
          [this](std::uint64_t next) { next_stream_.store(next, std::memory_order_relaxed); }),
      pages_(options.recording.queue, options.listen.threads, longest_frame(options)),
      recorder_(settings(options.recording), pages_, recorder_stats_, recorder_log_) {
  const recording::FileSeries& series = recorder_.series();
  if (series.is_open())
    log.info("recording", {{"directory", options.recording.directory},
                           {"file", recording::Directory::file_name(series.number())},
                           {"first_stream", std::to_string(series.next_stream())}});
  for (std::size_t i = 0; i < options.listen.threads; ++i)
    parts_.push_back(
        std::make_unique<ThreadRecording>(pages_, i, next_stream_, options.recording.commit));
  thread_.emplace(recorder_, pages_, std::move(ended));
}

void Recording::add_to(Sources& sources) const {
  sources.recorder.push_back(&recorder_stats_);
  upkeep_.add_to(sources);
  for (const auto& part : parts_) sources.taps.push_back(&part->stats());
  sources.threads.push_back(&recorder_log_.stats());
}

}  // namespace millrace
