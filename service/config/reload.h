// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "service/config/access_files.h"
#include "service/config/options.h"

namespace millrace {

// A new configuration that the running service can apply.
struct Reloaded {
  Configuration configuration;
  std::vector<std::string> changed;  // names of keys, like "limits.drain"
  std::string fewer_connections;     // why `connections` is less than in the file; usually empty
  AccessFiles access;                // its resume_keys are null if those in use remain
};

// Compares `read`, the configuration of the file now, with the running one. Returns the error
// `file: key 'name' = value: why` if a key differs that cannot change while the service runs.
Result<Reloaded, ConfigError> compare(const Configuration& running, Configuration read);

// Reads the file of the running configuration and those of [access] and [tls] again, lowers
// `connections` to what the descriptors allow, and compares, also with the content of the files in
// use. Returns an error if a path is not a regular file. Throws std::runtime_error if a key must be
// drawn, and the system has no randomness.
Result<Reloaded, ConfigError> reload(const Configuration& running, const AccessFiles& in_use);

}  // namespace millrace
