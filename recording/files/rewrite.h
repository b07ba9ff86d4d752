// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "base/result.h"
#include "recording/files/directory.h"
#include "recording/files/recording_file.h"
#include "recording/format/file_head.h"
#include "recording/format/part_table.h"

namespace millrace::recording {

// Chunks of a recording file that were damaged when it was rewritten.
struct DamagedChunks {
  std::uint64_t count = 0, bytes = 0;
  std::set<std::uint64_t> streams{};  // with slices in them, as far as the file names them
};

// A recording file that was rewritten.
struct Rewritten {
  std::uint64_t bytes = 0;  // size of the new file
  DamagedChunks kept{}, left_out{};
  std::uint64_t unread_bytes = 0;  // slices in whole chunks that are not valid, or have no channel
  PartTable parts{};               // those of the new file
  std::set<std::uint16_t> unread_channels{};  // that have unread slices
  std::vector<std::string> notices{};         // see keep_times()
};

// Copies the slices of a recording file for which `keep` is true to a new sealed file, without
// decoding and encoding them, and renames the new file over the old one. A damaged chunk is copied
// as it is if a summary says that it has slices of such streams alone; any other is left out, and
// the summary of the new file still counts its slices, as lost. A head that is damaged is made from
// the file before. The time of the last write stays. At each instant, a crash leaves the old file
// or the new one. If the disk cannot read something that is needed, the old file stays. The error
// is one line that names the file. Requires: lock_for_maintenance, and a file that was opened with
// Reading::copied.
Result<Rewritten, std::string> rewrite(const Directory& directory, RecordingFile& from,
                                       const std::function<bool(std::uint64_t stream)>& keep);

// The line about a file of which the disk could not read a part.
std::string unreadable_line(FileNumber file, std::error_code why);
// Sets the times of an earlier state of the file: retention deletes by the time of the last write.
// If the file system refuses, the file counts as written now: that is a line for `notices`.
void keep_times(int file, const struct stat& before, FileNumber number,
                std::vector<std::string>& notices);

// The number after those of all streams of the file, and not less than its first_stream.
std::uint64_t next_stream(const RecordingFile& file);

}  // namespace millrace::recording
