// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

namespace millrace {

// Where a command prints, and what the program exits with after it. The streams outlive the
// command.
struct Console {
  std::ostream& out;
  std::ostream& err;
  int exit_code = 0;
};

}  // namespace millrace
