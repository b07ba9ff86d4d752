// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <set>
#include <thread>

#include "base/queue.h"
#include "base/time.h"
#include "recording/files/directory.h"
#include "recording/files/retention.h"
#include "recording/writer/recorder_notices.h"
#include "recording/writer/stats.h"

namespace millrace::recording {

// The upkeep of sealed files, on a thread of its own, because it can take seconds: rewrites a file
// that was just sealed without the streams that were removed meanwhile, and deletes old files. A
// file that cannot be rewritten is tried again. While another process rewrites files (`millrace
// recordings rm`), it waits, and does nothing.
class Upkeep {
 public:
  static constexpr auto period = std::chrono::minutes(1);  // between two deletions by age

  // `wall` is the clock of SegmentSeries. `stats` is of this thread alone. `stats` and `notices`
  // must outlive it. Throws std::runtime_error if the directory cannot be opened.
  Upkeep(const std::string& directory, Retention retention, std::function<Duration()> wall,
         RecordingStats& stats, RecorderNotices& notices);
  // Ends after the work that was due.
  ~Upkeep();

  // A file was sealed, now or earlier. Thread-safe.
  void sealed(FileNumber number);

 private:
  void run();
  void add(FileNumber number);
  bool work();
  void rewrite();
  bool is_gone(FileNumber number) const;
  void delete_old();

  Directory directory_;
  const Retention retention_;
  const std::function<Duration()> wall_;
  RecordingStats& stats_;
  RecorderNotices& notices_;
  Queue<FileNumber> sealed_{std::numeric_limits<std::size_t>::max()};
  std::set<FileNumber> due_;  // to be rewritten, if streams were removed
  std::jthread thread_;
};

}  // namespace millrace::recording
