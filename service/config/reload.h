// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "service/config/options.h"

namespace millrace {

// A configuration that the running service takes over.
struct Reloaded {
  Configuration configuration;
  std::vector<std::string> changed;  // names of keys, like "limits.drain"
  std::string fewer_connections;     // than the file says: why; or empty
};

// What `read`, the file as it is now, changes of the configuration that runs. An error if it
// changes a key that cannot change while the service runs: `file: key 'name' = value: why`.
Result<Reloaded, ConfigError> compare(const Configuration& running, Configuration read);

// Reads the file of the running configuration again, fits it to the descriptors, and compares. Only
// a regular file can be read again.
Result<Reloaded, ConfigError> reload(const Configuration& running);

}  // namespace millrace
