// SPDX-License-Identifier: Apache-2.0
#include "recording/files/retention.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace millrace::recording {
namespace {

// Files that cannot be read are left out: they stay.
std::vector<StoredFile> stored_files(const Directory& directory, Duration wall) {
  std::vector<StoredFile> files;
  for (const FileNumber number : directory.list()) {
    const auto file = directory.open_to_read(number);
    struct stat facts {};
    if (!file || ::fstat(file->get(), &facts) != 0) continue;
    const Duration written = std::chrono::seconds(facts.st_mtim.tv_sec) +
                             std::chrono::nanoseconds(facts.st_mtim.tv_nsec);
    files.push_back({.number = number,
                     .bytes = static_cast<std::uint64_t>(facts.st_size),
                     .age = wall - written});
  }
  return files;
}

}  // namespace

std::vector<FileNumber> files_to_delete(const std::vector<StoredFile>& files,
                                        const Retention& retention) {
  std::uint64_t held = 0;
  for (const StoredFile& file : files) held += file.bytes;
  std::vector<FileNumber> deleted;
  for (std::size_t i = 0; i + 1 < files.size(); ++i) {
    if (held <= retention.keep && files[i].age <= retention.keep_for) break;
    deleted.push_back(files[i].number);
    held -= files[i].bytes;
  }
  return deleted;
}

Deleted apply(const Retention& retention, const Directory& directory, Duration wall) {
  const FileDescriptor lock = directory.lock_for_maintenance();
  const std::vector<StoredFile> files = stored_files(directory, wall);
  Deleted deleted;
  for (const FileNumber number : files_to_delete(files, retention)) {
    if (const auto removed = directory.remove(number); !removed) {
      deleted.errors.push_back(Directory::file_name(number) + ": " + removed.error().message());
      continue;
    }
    const auto file = std::ranges::find(files, number, &StoredFile::number);
    deleted.files.push_back(number);
    deleted.bytes += file->bytes;
  }
  if (!deleted.files.empty()) {
    if (const auto synced = directory.sync(); !synced)
      deleted.errors.push_back(directory.path() + ": " + synced.error().message());
  }
  return deleted;
}

}  // namespace millrace::recording
