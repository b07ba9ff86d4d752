// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

// Memory of the process, in bytes.
struct MemoryUse {
  std::uint64_t used = 0;   // resident, including slabs that are shared with workers
  std::uint64_t limit = 0;  // `used` plus the free memory
};

// The memory use now. The free memory is the least of:
// - the memory that the machine has available,
// - the rest of the limit of each control group that the process is in (version 1 or 2),
// - the rest of RLIMIT_AS and RLIMIT_DATA, which count mapped memory, resident or not.
// Memory of other programs and of the kernel, such as a worker's model, reduces the free memory,
// but does not count as used.
//
// Returns nullopt if /proc does not have these values. Throws std::system_error if a file cannot be
// opened because descriptors or memory are short. `root` is for tests.
std::optional<MemoryUse> memory_use(const std::string& root = "");

}  // namespace millrace
