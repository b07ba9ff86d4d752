// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace::training {

// Why a catalog cannot be opened: one line that names the path, and what to do.
struct CatalogError {
  std::string message;
};

}  // namespace millrace::training
