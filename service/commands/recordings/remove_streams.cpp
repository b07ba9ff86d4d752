// SPDX-License-Identifier: Apache-2.0
#include "service/commands/recordings/remove_streams.h"

#include <utility>

#include "recording/files/recovery.h"
#include "recording/files/segment_file.h"
#include "service/commands/recordings/repair.h"

namespace millrace::recordings {

using recording::Directory;
using recording::FileNumber;
using recording::Reading;
using recording::SegmentFile;

namespace {

// False also if it cannot be opened: seal_abandoned() reports that.
bool is_sealed(const Directory& directory, FileNumber number) {
  const auto file = SegmentFile::open(directory, number, Reading::copied);
  return file && file->sealed();
}

void rewrite(const Directory& directory, FileNumber number, const std::set<std::uint64_t>& streams,
             Removed& result) {
  // The service waits for this lock when it seals a file, so it is held for one file at a time.
  const auto lock = directory.lock_for_maintenance();
  if (!is_sealed(directory, number)) return;
  auto cleared = recording::rewrite_without(directory, number, streams);
  if (!cleared) {
    if (directory.exists(number)) result.errors.push_back(cleared.error());
    return;
  }
  if (cleared->changed) ++result.files;
  result.bytes += cleared->saved_bytes;
  for (std::string& line : cleared->damages) result.damages.push_back(std::move(line));
}

}  // namespace

Result<Removed, std::string> complete_removals(const std::string& path, Progress& progress) {
  auto sealed = seal_abandoned(path, progress);
  if (!sealed) return sealed.error();
  Removed result{.errors = std::move(sealed->errors)};
  for (const recording::Recovered& file : sealed->files)
    if (file.lost_bytes > 0)
      for (std::string& line : lines_about(file)) result.damages.push_back(std::move(line));
  const auto directory = open_to_change(path);
  if (!directory) return directory.error();
  {
    const auto lock = directory->lock_for_maintenance();
    directory->remove_temporaries();
  }
  const std::set<std::uint64_t> streams = directory->removed();
  if (streams.empty()) return result;
  for (const FileNumber number : directory->list()) {
    progress.show("rewriting " + Directory::file_name(number), Clock::now());
    rewrite(*directory, number, streams, result);
  }
  return result;
}

Result<Removed, std::string> remove_streams(const std::string& path,
                                            const std::set<std::uint64_t>& streams,
                                            Progress& progress) {
  const auto directory = open_to_change(path);
  if (!directory) return directory.error();
  {
    // A service that seals a file later sees these streams, and leaves them out.
    const auto lock = directory->lock_for_maintenance();
    directory->add_removed(streams);
  }
  return complete_removals(path, progress);
}

}  // namespace millrace::recordings
