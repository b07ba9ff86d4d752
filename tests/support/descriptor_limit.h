// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <stdexcept>
#include <system_error>

namespace millrace {

// While it exists, this process can open only `more` further descriptors.
//
// UBSan opens a pipe to inspect an object of an unknown type, and reports an error if it cannot. So
// virtual functions that are called while descriptors are short must have been called before. The
// constructor does so for the exception that reports the shortage.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t more) {
    try {
      throw std::system_error(EMFILE, std::generic_category(), "none");
    } catch (const std::exception& error) {
      (void)error.what();
    }
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
