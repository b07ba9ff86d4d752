// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>

namespace millrace {

// While it lives, this process may open so many descriptors more.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t more) {
    const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(lowest);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{static_cast<rlim_t>(lowest) + more, before_.rlim_max};
    if (lowest < 0 || ::setrlimit(RLIMIT_NOFILE, &limit) != 0)
      throw std::runtime_error("cannot limit descriptors");
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace millrace
