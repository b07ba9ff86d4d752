// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace::training {

// Why a catalog cannot be opened: a line that names the path, and what to do; a line per file if
// several files cannot be used.
struct CatalogError {
  std::string message;
};

}  // namespace millrace::training
