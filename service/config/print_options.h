// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "service/config/options.h"

namespace millrace {

// Every value that is in force, as a configuration that has the same effect, with the memory that
// it may take in comments.
std::string to_toml(const Options& options);

}  // namespace millrace
