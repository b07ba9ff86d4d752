// SPDX-License-Identifier: Apache-2.0
#include "recording/files/file_locks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace millrace::recording {
namespace {

constexpr const char* lock_name = "lock";

// A lock of one byte of the file.
struct flock byte_of(LockedPart part) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(part);
  lock.l_len = 1;
  return lock;
}

[[noreturn]] void fail_lock(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path + "/" + lock_name);
}

}  // namespace

FileDescriptor open_lock_file(int directory, const std::string& path) {
  FileDescriptor file(
      ::openat(directory, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) fail_lock(path);
  return file;
}

bool try_lock(int lock_file, const std::string& path, LockedPart part) {
  struct flock lock = byte_of(part);
  if (::fcntl(lock_file, F_OFD_SETLK, &lock) == 0) return true;
  if (errno != EAGAIN && errno != EACCES) fail_lock(path);
  return false;
}

void wait_for_lock(int lock_file, const std::string& path, LockedPart part) {
  struct flock lock = byte_of(part);
  while (::fcntl(lock_file, F_OFD_SETLKW, &lock) != 0)
    if (errno != EINTR) fail_lock(path);
}

bool is_locked(int directory, const std::string& path, LockedPart part) {
  const FileDescriptor file(::openat(directory, lock_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file && errno == ENOENT) return false;
  struct flock lock = byte_of(part);
  if (!file || ::fcntl(file.get(), F_OFD_GETLK, &lock) != 0) fail_lock(path);
  return lock.l_type != F_UNLCK;
}

}  // namespace millrace::recording
