// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

// Memory of the process, in bytes.
struct MemoryUse {
  std::uint64_t used = 0;  // resident, slabs that are shared with workers among it
  std::uint64_t most = 0;  // that it could have: what it has, and what is free
};

// As it is now. Free is the least of what the machine has available, what is left in each control
// group that the process is in (version 1 or 2), and what RLIMIT_AS and RLIMIT_DATA leave: those
// count mapped memory, resident or not. So what others have there, a worker's model or the
// kernel's own, makes less of it, but is not mistaken for ours. Nothing where /proc says neither
// this nor what the process has; throws std::system_error where descriptors are short for it.
// `root` is for tests.
std::optional<MemoryUse> memory_use(const std::string& root = "");

}  // namespace millrace
