// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace {

// Which program this is.
struct Build {
  std::string_view version;   // of the project
  std::string_view revision;  // of its source, when it was configured; "unknown" without git
  std::string_view compiler;
};

Build build();

}  // namespace millrace
