// SPDX-License-Identifier: Apache-2.0
#include "client/internal/changes.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace millrace {

int Changes::descriptor() {
  const std::lock_guard lock(mutex_);
  if (!event_) {
    event_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event_)
      throw std::system_error(errno, std::generic_category(), "cannot create a file descriptor");
  }
  return event_.get();
}

void Changes::add(std::uint64_t stream) {
  const std::lock_guard lock(mutex_);
  if (!event_) return;
  const bool first = streams_.empty();
  streams_.insert(stream);
  const std::uint64_t one = 1;
  if (first) [[maybe_unused]]
    const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

std::vector<std::uint64_t> Changes::take() {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  if (event_) [[maybe_unused]]
    const ssize_t got = ::read(event_.get(), &count, sizeof count);
  std::vector<std::uint64_t> streams(streams_.begin(), streams_.end());
  streams_.clear();
  return streams;
}

}  // namespace millrace
