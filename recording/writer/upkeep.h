// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "base/queue.h"
#include "base/result.h"
#include "base/time.h"
#include "recording/files/directory.h"
#include "recording/files/retention.h"
#include "recording/files/rewrite.h"
#include "recording/writer/recorder_notices.h"
#include "recording/writer/stats.h"

namespace millrace::recording {

// The upkeep of sealed files, on a thread of its own, because it can take seconds: rewrites files
// without the streams that were removed, and deletes old files, then the indexes of training, and
// the catalog of earlier versions. A step that fails is tried again, and does not keep it from the
// other step. While another process rewrites files (`millrace recordings rm`), it rewrites none,
// and deletes old files nevertheless: that process may have been stopped. It makes no directory,
// and begins when there is one.
class Upkeep {
 public:
  static constexpr auto period = std::chrono::minutes(1);  // between two deletions by age

  // The other user of the directory in this process.
  enum class Beside {
    recorder,  // sealed() names files that may have removed streams
    nothing,   // the newest file may be too old, too
  };

  // `wall` is the time since 1970. `stats` is of this thread alone. `stats` and `notices` must
  // outlive it. Construct it before this process changes files: see ClockTrust.
  Upkeep(std::string directory, Beside beside, Retention retention, std::function<Duration()> wall,
         RecordingStats& stats, RecorderNotices& notices);
  // Ends after the work that was due.
  ~Upkeep();

  // A file was sealed, now or earlier. Thread-safe.
  void sealed(FileNumber number);

 private:
  void run();
  void add(FileNumber number);
  bool open();
  bool work();
  void report_wait(bool waits);
  template <class Step>
  bool attempt(const Step& step);
  void fail(std::string_view why);
  void rewrite();
  Result<Cleared, std::string> clear(FileNumber number);
  void delete_old();
  Retention retention_now();
  std::uint64_t keep_now();

  const std::string path_;
  const Beside beside_;
  const Retention retention_;
  const std::function<Duration()> wall_;
  RecordingStats& stats_;
  RecorderNotices& notices_;
  const std::optional<Duration> changed_;  // latest_change() at the start
  ClockTrust clock_;
  std::optional<Directory> directory_;
  Queue<FileNumber> sealed_{std::numeric_limits<std::size_t>::max()};
  std::set<FileNumber> due_;                       // to be rewritten, if streams were removed
  std::set<std::uint64_t> removed_;                // the streams that were removed at the last look
  std::set<std::string> failed_, failed_before_;   // lines of this work(), and of the last one
  std::optional<Time> waits_since_;                // while another process has the lock
  bool waits_for_clock_ = false;                   // it was reported
  std::optional<std::uint64_t> most_while_short_;  // bytes of all files, while the disk is short
  std::jthread thread_;
};

}  // namespace millrace::recording
