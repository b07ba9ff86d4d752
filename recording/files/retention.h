// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "recording/files/directory.h"

namespace millrace::recording {

// A recording file, for the decision which ones to delete.
struct StoredFile {
  FileNumber number = 0;
  std::uint64_t bytes = 0;
  Duration written{};  // the time of its last write, since 1970
};

// How much a directory may hold ([recording] keep, keep_for).
struct Retention {
  std::uint64_t keep = 0;  // bytes
  Duration keep_for{};     // Duration::max(): nothing is deleted by its age
  bool newest = false;     // the newest file may be deleted by its age too: no process writes it
  // While less than `min_free` plus `spare` bytes are free, the oldest files are deleted: see
  // Upkeep.
  std::uint64_t min_free = 0;
  std::uint64_t spare = 0;
};

// The files to delete, oldest first.
struct FilesToDelete {
  std::vector<FileNumber> files{};
  std::size_t by_age = 0;  // number of files that are too old; the others are over `keep`
};

// Files older than `keep_for` at `now`, and then as many of the oldest ones as are needed to hold
// at most `keep`. Files are deleted in the order of their numbers, so a file that is kept keeps all
// later ones. Unless `newest` is set, the newest file is never deleted. `files` ascends by number.
//
// Files are written in the order of their numbers. Times that do not fit into this order, or are
// after `now`, are those of a clock that was wrong: as few as possible of them are left out, and
// such a file counts as written at the time of the next file that fits, or at `now`. Pure.
FilesToDelete files_to_delete(const std::vector<StoredFile>& files, const Retention& retention,
                              Duration now);

// The bytes of all recording files. Throws std::system_error if the directory cannot be read.
std::uint64_t stored_bytes(const Directory& directory);

// The latest change of a recording file in the directory up to `now`: the wall clock had this time.
// nullopt without such a file, or if the directory cannot be read.
std::optional<Duration> latest_change(const std::string& directory, Duration now);

// Decides whether files may be deleted by their age, so that a wall clock that is wrong, for
// instance until NTP has set it, does not delete everything. It is believed at once if the
// directory was changed less than `settling` ago. Otherwise, and after it was set by more than
// `step`, it is believed when `settling` has passed on the steady clock. Confined to one thread.
class ClockTrust {
 public:
  static constexpr Duration settling = std::chrono::hours(1);
  static constexpr Duration step = std::chrono::minutes(1);

  // `changed` is the latest_change() before this process changed anything.
  explicit ClockTrust(std::optional<Duration> changed) : changed_(changed) {}

  // Call it at least every few minutes. `wall` is the time since 1970.
  bool believes(Duration wall, Time now);

 private:
  const std::optional<Duration> changed_;
  std::optional<Duration> offset_;  // at the last call: wall clock minus steady clock
  Time settled_{};
};

// The outcome of apply().
struct Deleted {
  std::vector<FileNumber> files{};
  std::size_t by_age = 0;  // see FilesToDelete
  std::uint64_t bytes = 0;
  std::vector<std::string> errors{};  // lines that name a file
};

// Deletes these files. Needs no lock: see Directory::remove. `now` is the time since 1970. A reader
// keeps the files that it has open. Throws std::system_error if the directory cannot be read.
Deleted apply(const Retention& retention, const Directory& directory, Duration now);

}  // namespace millrace::recording
