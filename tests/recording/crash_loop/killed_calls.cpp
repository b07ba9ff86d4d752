// SPDX-License-Identifier: Apache-2.0
// The functions below are those of the C library. The program's own definitions come first.
#include "tests/recording/crash_loop/killed_calls.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstddef>

namespace {

std::uint64_t calls_left = 0;
std::uint64_t draw = 0;
millrace::SyncedFile* synced = nullptr;

[[noreturn]] void die() {
  for (;;) ::kill(::getpid(), SIGKILL);
}

bool is_last() { return calls_left > 0 && --calls_left == 0; }

// Makes the call, unless the process dies before it.
template <class Call>
auto last_or(Call call) {
  const bool last = is_last();
  if (last && draw % 3 == 0) die();
  const auto result = call();
  if (last) die();
  return result;
}

void note_sync(int descriptor) {
  struct stat facts {};
  if (!synced || ::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  synced->inode = facts.st_ino;
  synced->size = static_cast<std::uint64_t>(facts.st_size);
}

}  // namespace

void millrace::kill_after(std::uint64_t calls, std::uint64_t how, SyncedFile* file) {
  calls_left = calls;
  draw = how;
  synced = file;
}

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t size) {
  const bool last = is_last();
  if (last && draw % 3 == 0) die();
  // A part of the bytes, at any byte or at the end of a page.
  if (last && draw % 3 == 1) size = draw / 3 % (size + 1) & ~(draw % 2 == 0 ? size_t{4095} : 0);
  const ssize_t written = ::syscall(SYS_write, descriptor, bytes, size);
  if (last) die();
  return written;
}

int fdatasync(int descriptor) {
  const int result =
      last_or([=] { return static_cast<int>(::syscall(SYS_fdatasync, descriptor)); });
  if (result == 0) note_sync(descriptor);
  return result;
}

int fsync(int descriptor) {
  const int result = last_or([=] { return static_cast<int>(::syscall(SYS_fsync, descriptor)); });
  if (result == 0) note_sync(descriptor);
  return result;
}

int ftruncate(int descriptor, off_t size) noexcept {
  return last_or([=] { return static_cast<int>(::syscall(SYS_ftruncate, descriptor, size)); });
}

int fallocate(int descriptor, int mode, off_t offset, off_t size) {
  return last_or(
      [=] { return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, offset, size)); });
}

int renameat(int from, const char* old_name, int to, const char* name) noexcept {
  return last_or(
      [=] { return static_cast<int>(::syscall(SYS_renameat, from, old_name, to, name)); });
}

int unlinkat(int directory, const char* name, int flags) noexcept {
  return last_or([=] { return static_cast<int>(::syscall(SYS_unlinkat, directory, name, flags)); });
}

int futimens(int descriptor, const struct timespec* times) noexcept {
  return last_or(
      [=] { return static_cast<int>(::syscall(SYS_utimensat, descriptor, nullptr, times, 0)); });
}

int openat(int directory, const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return last_or(
      [=] { return static_cast<int>(::syscall(SYS_openat, directory, name, flags, mode)); });
}
}
