// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "base/time.h"

namespace millrace::load {

// CPU time that a thread of this process, or the whole process, has used.
Duration cpu_of_thread(pthread_t thread);
Duration cpu_of_us();

// The resources of a process.
struct Usage {
  Duration cpu{};               // used until now by all its threads
  std::size_t bytes = 0;        // resident memory, without files and shared memory
  std::size_t descriptors = 0;  // 0 without the permission to count them
};

// Nullopt if there is no such process.
std::optional<Usage> usage_of(pid_t process);

}  // namespace millrace::load
