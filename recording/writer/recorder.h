// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/time.h"
#include "recording/writer/file_series.h"
#include "recording/writer/page_pool.h"
#include "recording/writer/pending_slices.h"
#include "recording/writer/recorder_notices.h"
#include "recording/writer/stats.h"

namespace millrace::recording {

struct RecorderSettings {
  std::string directory{};
  std::size_t file_size = std::size_t{256} << 20;    // bytes after which the next file begins
  Duration commit = std::chrono::milliseconds(200);  // the time between commits
  std::size_t commit_bytes = std::size_t{4} << 20;   // a commit has about this much at most
  std::size_t min_free = std::size_t{1} << 30;       // recording is suspended with less free space
  Duration lock_wait{};                              // see FileSeries
  FileSeries::WallClock wall{};
};

// Records streams: pages in, recording files out. It has no thread; RecorderThread calls it.
//
// A failed write or sync, or too little space, loses whole slices of all streams. The next slice of
// each stream then states what was lost. After a failed write or sync the next file begins at once;
// if that fails too, and while there is too little space, recording is suspended: slices are
// dropped, and it tries again after a second, later less often.
//
// Confined to one thread.
class Recorder final : private PendingSlices::Sink {
 public:
  // Streams that have ended, and whose end could not be written, are kept until it can be: at most
  // this many. The ends of others are not recorded.
  static constexpr std::size_t most_unwritten_ends = 4096;

  // See FileSeries; throws its exceptions. If the disk is full or at fault, recording begins
  // suspended. The arguments must outlive it.
  Recorder(RecorderSettings settings, PagePool& pages, RecordingStats& stats,
           RecorderNotices& notices);

  const FileSeries& series() const { return series_; }

  // Takes a page; gives it back to the pool with the next commit.
  void take(Page& page, Time now);
  // The next commit has as much as it should have: call work() before more is taken.
  bool has_enough() const;
  // When work() must be called; earlier calls are harmless.
  Time due() const;
  void work(Time now);
  // Commits and seals. The last call.
  void finish(Time now);
  // While `sheds`, all slices are dropped, because memory is short.
  void shed(bool sheds);

 private:
  // A slice that was added to the file, and that no commit has.
  struct Uncommitted {
    PendingStream* stream = nullptr;
    bool has_events = false;
    std::uint64_t first_event = 0;
    std::uint64_t begin = 0;
    std::optional<LostEvents> lost{};
    std::optional<StreamTotals> closing{};
  };

  // Slices dropped since the current suspension or series of drops began. They are reported at
  // growing intervals, so that the log keeps room for other lines.
  struct Drops {
    std::uint64_t slices = 0;
    std::uint64_t reported = 0;                // their number in the last notice
    DropReason because{};                      // why the last one was dropped
    Duration wait = std::chrono::seconds(30);  // half of the time to the next notice
    Time report{};                             // when it may be given
  };

  void add(PendingStream& stream) override;
  void drop(PendingStream& stream, DropReason reason) override;
  void skipped(DropReason reason) override;
  bool has_room(const PendingStream& stream);
  bool has_file();
  void keep_end(PendingStream& stream);
  void write_ends();

  void commit();
  bool write();
  void lose(DropReason reason);
  void seal();

  std::optional<DropReason> blocked() const;
  void give_up(PendingStream& stream);
  void fail(std::error_code why);
  void suspend(DropReason reason, const std::string& why);
  void check_disk();
  void report_dropped();
  void look_at_disk();
  void try_to_resume();

  const RecorderSettings settings_;
  PagePool& pages_;
  RecordingStats& stats_;
  RecorderNotices& notices_;
  FileSeries series_;
  PendingSlices streams_;
  std::vector<Page*> held_;  // their records are in streams_
  std::vector<Uncommitted> uncommitted_;
  std::vector<std::uint64_t> gone_;            // streams to remove when the slices were written
  std::deque<PendingStream*> unwritten_ends_;  // they wait for room
  Time now_{};                                 // the time of the current call
  Time committed_{};                           // when the last commit was
  Time checked_{};                             // when the disk was checked last
  bool sheds_ = false;
  std::optional<DropReason> suspended_;
  Time retry_{};      // when to resume, if suspended
  int failures_ = 0;  // failed files since the last good commit
  Drops drops_;
};

}  // namespace millrace::recording
