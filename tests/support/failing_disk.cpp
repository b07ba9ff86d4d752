// SPDX-License-Identifier: Apache-2.0
#include "tests/support/failing_disk.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace millrace::test {
namespace {

FailingDisk* disk = nullptr;

int fails(int error) {
  errno = error;
  return -1;
}

}  // namespace

FailingDisk::FailingDisk() { disk = this; }
FailingDisk::~FailingDisk() { disk = nullptr; }

}  // namespace millrace::test

// The program's own functions are used instead of those of the C library.
extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t size) {
  using millrace::test::disk;
  struct stat facts {};
  if (!disk || ::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode))
    return ::syscall(SYS_write, descriptor, bytes, size);
  ++disk->writes;
  if (disk->interrupt > 0) {
    if (--disk->interrupt % 2 == 0) return millrace::test::fails(EINTR);
    size = size > 3 ? size / 3 : size;
  } else if (disk->write != 0) {
    disk->wrote_part = !disk->wrote_part && size >= 8;
    if (!disk->wrote_part) return millrace::test::fails(disk->write);
    size /= 8;
  }
  return ::syscall(SYS_write, descriptor, bytes, size);
}

ssize_t pread(int descriptor, void* into, size_t size, off_t offset) {
  using millrace::test::disk;
  const auto begin = static_cast<std::uint64_t>(offset);
  if (disk && disk->unreadable && begin < disk->unreadable->second) {
    const std::uint64_t bad = disk->unreadable->first;
    if (begin >= bad) return millrace::test::fails(EIO);
    size = std::min<size_t>(size, bad - begin);
  }
  const ssize_t read = ::syscall(SYS_pread64, descriptor, into, size, offset);
  if (disk && read > 0) disk->read_bytes += static_cast<std::uint64_t>(read);
  return read;
}

int unlinkat(int directory, const char* name, int flags) {
  using millrace::test::disk;
  const int done = static_cast<int>(::syscall(SYS_unlinkat, directory, name, flags));
  if (disk && disk->gets_space && done == 0 && std::string_view(name).ends_with(".mcap"))
    disk->write = 0;
  return done;
}

int fdatasync(int descriptor) {
  using millrace::test::disk;
  if (disk) ++disk->syncs;
  if (disk && disk->sync != 0) return millrace::test::fails(disk->sync);
  return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

int fallocate(int descriptor, int mode, off_t offset, off_t size) {
  using millrace::test::disk;
  if (disk && disk->reserve != 0) return millrace::test::fails(disk->reserve);
  return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, offset, size));
}

int futimens(int descriptor, const timespec* times) {
  using millrace::test::disk;
  if (disk && disk->set_time != 0) return millrace::test::fails(disk->set_time);
  return static_cast<int>(::syscall(SYS_utimensat, descriptor, nullptr, times, 0));
}

dirent* readdir(DIR* entries) {
  using millrace::test::disk;
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  if (!disk || disk->list == 0) return real(entries);
  errno = disk->list;
  return nullptr;
}

int fstatvfs(int, struct statvfs* into) {
  using millrace::test::disk;
  *into = {};
  into->f_frsize = into->f_bsize = 4096;
  into->f_bavail = disk ? disk->free_bytes.value_or(1ull << 40) / 4096 : 1ull << 28;
  return 0;
}

}  // extern "C"
