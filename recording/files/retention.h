// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "recording/files/directory.h"

namespace millrace::recording {

// A segment file, for the decision which ones to delete.
struct StoredFile {
  FileNumber number = 0;
  std::uint64_t bytes = 0;
  Duration age{};  // since its last write
};

// How much a directory may hold ([recording] keep, keep_for).
struct Retention {
  std::uint64_t keep = 0;  // bytes
  Duration keep_for{};
};

// The files to delete, oldest first: files older than `keep_for`, and then as many of the oldest
// ones as are needed to hold at most `keep`. Files are deleted in the order of their numbers, so a
// file that is kept keeps all later ones. The newest file is never deleted. `files` ascends by
// number. Pure.
std::vector<FileNumber> files_to_delete(const std::vector<StoredFile>& files,
                                        const Retention& retention);

// The outcome of apply().
struct Deleted {
  std::vector<FileNumber> files{};
  std::uint64_t bytes = 0;
  std::vector<std::string> errors{};  // lines that name a file
};

// Deletes these files under the lock for maintenance, which it waits for. `wall` is the time since
// 1970. A reader keeps the files that it has open. Throws std::system_error if the directory cannot
// be read.
Deleted apply(const Retention& retention, const Directory& directory, Duration wall);

}  // namespace millrace::recording
