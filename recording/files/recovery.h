// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "recording/files/directory.h"
#include "recording/files/recording_file.h"

namespace millrace::recording {

// The outcome of recovery.
struct Recovered {
  FileNumber file = 0;
  std::uint64_t cut_bytes = 0;   // after the last whole chunk
  std::uint64_t lost_bytes = 0;  // in damaged chunks before or after it
  // Streams that may have lost slices: those without an end in this file, "17 from position 48000",
  // those with damaged slices, "3 from position 1600 to 3200", and "channel 5, which is damaged".
  std::vector<std::string> streams{};
  std::vector<std::string> notices{};  // see keep_times()
};

// Seals a recording file that its writer left unsealed: cuts it after its last whole chunk, and
// writes its summary. A file that is sealed stays as it is. If something before the last whole
// chunk is damaged, or something after it that no interrupted write leaves, the file is rewritten
// without it. If the disk cannot read a part of the file, it stays unsealed: that is an error. The
// time of the last write stays. After a crash, call this again: no whole chunk was lost. An error
// is one line that names the file.
// Requires: no process writes the file (Directory::lock_for_writing or lock_for_maintenance).
Result<Recovered, std::string> recover(const Directory& directory, FileNumber number);

// A recording file without removed streams.
struct Cleared {
  bool changed = false;  // rewritten or deleted; false: it has none of them, or stays as it is
  std::uint64_t saved_bytes = 0;
  // The damage before, which is kept or left out: lines that name the file, bytes and streams.
  std::vector<std::string> damages{};
  std::vector<std::string> notices{};  // see keep_times()
};

// Whether the newest file, which knows the next number of a stream, may be deleted.
enum class Newest : std::uint8_t {
  stays,
  goes,  // once `next` has its numbers. Requires: Directory::lock_for_writing
};

// Deletes a sealed recording file that has some of these streams, and no other. Needs no space on
// the disk. The error is one line that names the file. Requires: lock_for_maintenance.
Result<Cleared, std::string> delete_without(const Directory& directory, FileNumber number,
                                            const std::set<std::uint64_t>& streams, Newest newest);

// The same, except that a file that has other streams too, or is the newest, is rewritten without
// these, and renamed into place. If the file has none of the streams, it is not touched.
Result<Cleared, std::string> rewrite_without(const Directory& directory, FileNumber number,
                                             const std::set<std::uint64_t>& streams);

}  // namespace millrace::recording
