// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.h"

namespace millrace::recording {

// The locks of a directory: parts of one file, `lock`. Each lock belongs to the open file (an OFD
// lock), so it ends when the descriptor is closed, also by kill -9. Failures throw
// std::system_error, which names `path`, the directory.
enum class LockedPart : std::uint8_t {
  writer,       // held by the process that writes recording files
  maintenance,  // held while sealed files are replaced
  removed,      // held while the file `removed` is replaced
};

// Makes the file if it does not exist. It is not locked.
FileDescriptor open_lock_file(int directory, const std::string& path);
// False if another open file has the lock.
bool try_lock(int lock_file, const std::string& path, LockedPart part);
void wait_for_lock(int lock_file, const std::string& path, LockedPart part);
// True if any open file of any process has the lock. Makes no file.
bool is_locked(int directory, const std::string& path, LockedPart part);

}  // namespace millrace::recording
