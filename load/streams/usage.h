// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "base/time.h"

namespace millrace::load {

// CPU time that a thread of ours has used, or all of them.
Duration cpu_of_thread(pthread_t thread);
Duration cpu_of_us();

// What a process has used until now, or uses now.
struct Usage {
  Duration cpu{};               // all of its threads
  std::size_t bytes = 0;        // resident memory of its own: not files, not what it shares
  std::size_t descriptors = 0;  // 0 where we may not count them
};

// Nothing where there is no such process (any more).
std::optional<Usage> usage_of(pid_t process);

}  // namespace millrace::load
