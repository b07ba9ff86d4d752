// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "base/time.h"

namespace millrace::bench {

// CPU time used until now, or between two instants.
struct CpuTimes {
  Duration process{};  // the service
  Duration thread{};   // of ours, the one that asks
  Duration rest{};     // our other threads
  Duration machine{};  // everybody, what the hypervisor took included; in steps of 10 ms

  CpuTimes operator-(const CpuTimes& before) const;
};

// Throws std::runtime_error when there is no such process.
CpuTimes cpu_times(pid_t service);

}  // namespace millrace::bench
