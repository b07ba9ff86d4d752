// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iosfwd>

namespace millrace {

// The output streams of a command, and the exit code of the program. The streams must outlive the
// command.
struct Console {
  std::ostream& out;
  std::ostream& err;
  int exit_code = 0;
  bool terminal = false;    // err is a terminal: progress may be shown
  std::size_t columns = 0;  // width of the terminal that out is; 0: out is a file or a pipe
};

}  // namespace millrace
