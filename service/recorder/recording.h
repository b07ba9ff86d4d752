// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "monitoring/sources.h"
#include "recording/writer/page_pool.h"
#include "recording/writer/recorder.h"
#include "recording/writer/recorder_thread.h"
#include "recording/writer/stats.h"
#include "service/config/options.h"
#include "service/log/log.h"
#include "service/log/log_writer.h"
#include "service/recorder/recorder_log.h"
#include "service/recorder/recording_upkeep.h"
#include "service/recorder/thread_recording.h"

namespace millrace {

// True if a pipeline has `record`.
bool records(const Options& options);

// The recorder of a service: its threads, and its part on each io thread. Without finish(), the
// destructor leaves the last recording file as a crash would.
class Recording {
 public:
  // Opens [recording] directory, recovers its last file and begins the next one. If the disk is
  // full or at fault, recording begins suspended. `ended` is called on the recorder's thread after
  // finish(), when the last file is sealed. If the configuration is wrong, throws
  // std::runtime_error with a line that begins with the key. `log` is that of the calling thread.
  // `writer` must outlive it. Requires: records(options).
  Recording(const Options& options, LogWriter& writer, Log& log, std::function<void()> ended);

  // The part on the io thread with this index.
  ThreadRecording& thread(std::size_t index) { return *parts_[index]; }

  // Records the pages that were handed over, seals the last file, and ends. Does not wait.
  // Requires: each io thread has handed over its last page.
  void finish() { thread_->finish(); }
  // While `sheds`, nothing is written, because memory is short. Thread-safe.
  void shed(bool sheds) { thread_->shed(sheds); }

  // True while nothing is written because of the disk. Thread-safe.
  bool suspended() const { return recorder_stats_.suspended.value() != 0; }

  void add_to(Sources& sources) const;

 private:
  RecordingUpkeep upkeep_;  // made first: it looks at the files before the recorder changes them
  std::atomic<std::uint64_t> next_stream_ = 0;
  RecorderLog recorder_log_;
  recording::RecordingStats recorder_stats_;
  recording::PagePool pages_;
  recording::Recorder recorder_;
  std::vector<std::unique_ptr<ThreadRecording>> parts_;
  std::optional<recording::RecorderThread> thread_;  // made last: then the recorder is its own
};

}  // namespace millrace
