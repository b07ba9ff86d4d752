// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace {

// Identifies the program.
struct Build {
  std::string_view version;   // version of the project
  std::string_view revision;  // git revision of the source at configure time, or "unknown"
  std::string_view compiler;
};

Build build();

}  // namespace millrace
