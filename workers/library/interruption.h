// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "transport/net/file_descriptor.h"
#include "workers/library/worker.h"

namespace millrace {

// Wakes a thread that polls descriptors, and tells it that it was interrupted. One thread takes
// interruptions; set() is thread-safe, and may be called in a signal handler.
class Interruption {
 public:
  // Throws WorkerError where descriptors are short.
  Interruption() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) throw WorkerError(std::string("no descriptor: ") + std::strerror(errno));
  }

  // Readable from set() to take().
  int descriptor() const { return wake_.get(); }

  // The flag last: a descriptor that is written after its flag was taken would wake the next wait
  // for ever.
  void set() noexcept {
    const int error = errno;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
    set_.store(true);
    errno = error;
  }
  bool is_set() const { return set_; }
  bool take() {
    if (!set_.exchange(false)) return false;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
    return true;
  }

 private:
  const FileDescriptor wake_;  // an eventfd
  std::atomic<bool> set_{false};
};

}  // namespace millrace
