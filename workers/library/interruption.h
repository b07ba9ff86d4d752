// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/file_descriptor.h"
#include "workers/library/worker.h"

namespace millrace {

// A flag that also wakes a thread that polls descriptors. consume() is confined to one thread.
// set() is thread-safe and may be called in a signal handler.
class Interruption {
 public:
  // Throws WorkerError if the process has no free descriptors.
  Interruption() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_)
      throw WorkerError(std::string("cannot create a file descriptor: ") + std::strerror(errno));
  }

  // Readable from set() until consume().
  int descriptor() const { return wake_.get(); }

  // Sets the flag last: if the descriptor became readable after consume() of the flag, it would
  // stay readable.
  void set() noexcept {
    const int error = errno;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
    set_.store(true);
    errno = error;
  }
  bool is_set() const { return set_; }
  // Clears the flag. Returns whether it was set.
  bool consume() {
    if (!set_.exchange(false)) return false;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t bytes_read = ::read(wake_.get(), &count, sizeof count);
    return true;
  }

 private:
  const FileDescriptor wake_;  // an eventfd
  std::atomic<bool> set_{false};
};

}  // namespace millrace
