// SPDX-License-Identifier: Apache-2.0
#include "service/descriptors.h"

#include <sys/resource.h>

namespace millrace {

std::uint64_t descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return descriptor_limit();
}

}  // namespace millrace
