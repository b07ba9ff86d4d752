// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "service/config/options.h"

namespace millrace {

// All effective values, as a configuration with the same effect. Its comments have the lengths in
// time and the most memory that the service may take.
std::string to_toml(const Options& options);

}  // namespace millrace
