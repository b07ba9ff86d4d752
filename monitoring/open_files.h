// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace millrace {

// The number of open file descriptors of this process. Reading the folder /proc/self/fd instead
// takes 15 ms for 10 000 of them.
std::size_t open_files();

// The same on a kernel before Linux 6.2: tries each descriptor that the process may have.
std::size_t count_open_files();

}  // namespace millrace
