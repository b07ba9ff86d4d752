// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "recording/files/directory.h"
#include "recording/files/file_writer.h"
#include "recording/writer/recorder_notices.h"
#include "recording/writer/stats.h"

namespace millrace::recording {

// The recording files that one process writes, one after the other. After an error of the file that
// is being written, that file is abandoned: no call is repeated on it. Confined to one thread.
class FileSeries {
 public:
  // Nanoseconds since 1970, for times in files.
  using WallClock = std::function<Duration()>;

  // Opens the directory. If the configuration is wrong (the directory, or another writer), throws
  // std::runtime_error with a line about it. A fault of the disk is no such error: open() tries
  // again. Waits up to `lock_wait` for the lock of the writer: a command that repairs the directory
  // has it for a short time. `stats` and `notices` must outlive it.
  FileSeries(std::string directory, Duration lock_wait, WallClock wall, RecordingStats& stats,
             RecorderNotices& notices);

  // The number of the next stream: no stream of the directory had it, or a later one. 0: it is not
  // known, because the directory could not be read yet.
  std::uint64_t next_stream() const { return next_stream_; }
  // The stream with this number is recorded.
  void use(std::uint64_t stream) { next_stream_ = std::max(next_stream_, stream + 1); }

  // Free bytes of the file system; 0 if it cannot be asked.
  std::uint64_t free_bytes() const;

  // Opens the directory, unless it is open.
  Result<void, std::error_code> open();

  bool is_open() const { return writer_.has_value(); }
  // Requires: is_open().
  FileWriter& writer() { return *writer_; }
  FileNumber number() const { return number_; }  // the last file

  // Begins the next file. The first time, it recovers the last one before. Requires: not is_open().
  Result<void, std::error_code> begin();
  // Writes and syncs what was added to the writer. After an error the file is not open.
  Result<void, std::error_code> commit();
  // Requires: commit() was the last call. The file is not open afterwards.
  Result<void, std::error_code> seal();
  // The file is no longer open: its name or its directory was removed.
  bool is_removed() const;
  void abandon(std::string_view why);

 private:
  void open_to_write(Duration lock_wait);
  void find_numbers(const Directory& directory);
  std::uint64_t find_last(const Directory& directory);
  // Recovers the file `full_`. Returns the error.
  std::optional<std::string> recover_full();
  void count(const Recovered& recovered);
  Result<void, std::error_code> keep_numbers();
  Result<void, std::error_code> create_next();
  Result<void, std::error_code> skip_taken();
  void fail(FileOperation operation, std::error_code why);
  // Counts the error.
  std::error_code failed(FileOperation operation, std::error_code why);

  const WallClock wall_;
  RecordingStats& stats_;
  RecorderNotices& notices_;
  const std::string path_;
  Duration lock_wait_;                  // for the first recovery
  std::optional<Directory> directory_;  // with the lock of the writer
  const std::string run_;
  std::optional<FileWriter> writer_;
  FileNumber number_ = 0;
  std::uint64_t next_stream_ = 0;
  std::uint64_t kept_stream_ = 0;   // the number that the directory keeps
  std::vector<FileNumber> found_;   // files of earlier runs, until they are reported
  std::optional<FileNumber> full_;  // the last file, if it is to be sealed
};

// True if the file system has no room.
bool is_disk_full(std::error_code why);

}  // namespace millrace::recording
