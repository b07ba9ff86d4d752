// SPDX-License-Identifier: Apache-2.0
#include "service/commands/recordings/remove_streams.h"

#include <utility>

#include "recording/files/recovery.h"
#include "recording/files/segment_file.h"
#include "service/commands/recordings/repair.h"

namespace millrace::recordings {

using recording::Directory;
using recording::FileNumber;
using recording::SegmentFile;

namespace {

bool is_sealed(const Directory& directory, FileNumber number) {
  const auto file = SegmentFile::open(directory, number);
  return file && file->sealed();
}

}  // namespace

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
  auto sealed = seal_abandoned(path, progress);
  if (!sealed) return sealed.error();
  Removed result{.bytes = 0, .errors = std::move(sealed->errors)};
  const std::set<std::uint64_t> all = directory->removed();
  for (const FileNumber number : directory->list()) {
    progress.show("rewriting " + Directory::file_name(number), Clock::now());
    // The service waits for this lock when it seals a file, so it is held for one file at a time.
    const auto lock = directory->lock_for_maintenance();
    if (!is_sealed(*directory, number)) continue;
    const auto saved = recording::rewrite_without(*directory, number, all);
    if (saved)
      result.bytes += *saved;
    else
      result.errors.push_back(saved.error());
  }
  return result;
}

}  // namespace millrace::recordings
