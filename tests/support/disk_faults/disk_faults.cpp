// SPDX-License-Identifier: Apache-2.0
// A disk with faults. A process that loads this library by LD_PRELOAD calls its functions in place
// of those of the C library. They affect only recording files (NAME.mcap), and the free space of
// file systems. MILLRACE_DISK_FAULTS names the file of a Control, which another process has mapped
// too.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

// tests/system/disk_faults.py has the same fields in the same order.
struct Control {
  // Set by the test. 0: no fault.
  std::atomic<std::int64_t> write_error;    // errno of each write
  std::atomic<std::int64_t> longest_write;  // bytes; the rest of a write is left to the caller
  std::atomic<std::int64_t> write_ms;       // time that each write takes
  std::atomic<std::int64_t> interruptions;  // number of calls that fail with EINTR first
  std::atomic<std::int64_t> reserve_error;  // errno of each fallocate
  std::atomic<std::int64_t> sync_errors;    // number of syncs that fail with EIO first
  std::atomic<std::int64_t> create_error;   // errno of each open of a new file
  std::atomic<std::int64_t> used_up;        // the file system reports no free space
  // Counted here.
  std::atomic<std::int64_t> faults;    // calls that failed or were short
  std::atomic<std::int64_t> repeated;  // writes and syncs of a file after its sync has failed
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

constexpr std::size_t most_files = 1024;

constinit std::atomic<Control*> control = nullptr;
constinit std::array<std::atomic<bool>, most_files> lost{};  // by descriptor: a sync has failed

[[gnu::constructor]] void map_control() {
  const char* const path = std::getenv("MILLRACE_DISK_FAULTS");
  if (!path) return;
  const auto file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC));
  void* const mapped =
      ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) std::abort();
  control = static_cast<Control*>(mapped);
}

bool is_segment_name(std::string_view path) { return path.ends_with(".mcap"); }

bool is_recording_file(int descriptor) {
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  const ssize_t length = ::readlink(link.data(), path.data(), path.size());
  return length > 0 && is_segment_name({path.data(), static_cast<std::size_t>(length)});
}

// The control if the call is one on a recording file, otherwise null.
Control* control_of(int descriptor) {
  Control* const mapped = control;
  return mapped && is_recording_file(descriptor) ? mapped : nullptr;
}

// True for the first `left` calls.
bool counts_down(std::atomic<std::int64_t>& left) {
  std::int64_t now = left;
  while (now > 0 && !left.compare_exchange_weak(now, now - 1)) {
  }
  return now > 0;
}

int fail(Control& mapped, std::int64_t error) {
  ++mapped.faults;
  errno = static_cast<int>(error);
  return -1;
}

void count_repeated(Control& mapped, int descriptor) {
  if (static_cast<std::size_t>(descriptor) < most_files &&
      lost[static_cast<std::size_t>(descriptor)])
    ++mapped.repeated;
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  if (Control* const mapped = control_of(descriptor)) {
    count_repeated(*mapped, descriptor);
    if (const std::int64_t ms = mapped->write_ms) ::poll(nullptr, 0, static_cast<int>(ms));
    if (counts_down(mapped->interruptions)) return fail(*mapped, EINTR);
    if (const std::int64_t error = mapped->write_error) return fail(*mapped, error);
    const auto longest = static_cast<std::size_t>(mapped->longest_write.load());
    if (longest > 0 && size > longest) {
      ++mapped->faults;
      size = longest;
    }
  }
  return ::syscall(SYS_write, descriptor, bytes, size);
}

int fdatasync(int descriptor) {
  if (Control* const mapped = control_of(descriptor)) {
    count_repeated(*mapped, descriptor);
    if (counts_down(mapped->interruptions)) return fail(*mapped, EINTR);
    if (counts_down(mapped->sync_errors)) {
      if (static_cast<std::size_t>(descriptor) < most_files)
        lost[static_cast<std::size_t>(descriptor)] = true;
      return fail(*mapped, EIO);
    }
  }
  return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

int close(int descriptor) {
  if (descriptor >= 0 && static_cast<std::size_t>(descriptor) < most_files)
    lost[static_cast<std::size_t>(descriptor)] = false;
  return static_cast<int>(::syscall(SYS_close, descriptor));
}

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  if (Control* const mapped = control_of(descriptor)) {
    if (counts_down(mapped->interruptions)) return fail(*mapped, EINTR);
    if (const std::int64_t error = mapped->reserve_error) return fail(*mapped, error);
  }
  return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, offset, length));
}

int openat(int directory, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  Control* const mapped = control;
  if (mapped && (flags & O_CREAT) != 0 && is_segment_name(path))
    if (const std::int64_t error = mapped->create_error) return fail(*mapped, error);
  return static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
}

int fstatvfs(int descriptor, struct statvfs* facts) {
  std::array<char, 64> link{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  const int result = ::statvfs(link.data(), facts);
  Control* const mapped = control;
  if (result == 0 && mapped && mapped->used_up) facts->f_bavail = facts->f_bfree = 0;
  return result;
}

}  // extern "C"
