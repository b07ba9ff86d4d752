// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "service/config/options.h"

namespace millrace {

// A new configuration that the running service can apply.
struct Reloaded {
  Configuration configuration;
  std::vector<std::string> changed;  // names of keys, like "limits.drain"
  std::string fewer_connections;     // why `connections` is less than in the file; usually empty
  std::shared_ptr<const TokenList> tokens;  // null: no token is needed
};

// Compares `read`, the configuration of the file now, with the running one. Returns the error
// `file: key 'name' = value: why` if a key differs that cannot change while the service runs.
Result<Reloaded, ConfigError> compare(const Configuration& running, Configuration read);

// Reads the file of the running configuration and that of its tokens again, lowers `connections` to
// what the descriptors allow, and compares, also with the list of tokens in use. Returns an error
// if a path is not a regular file.
Result<Reloaded, ConfigError> reload(const Configuration& running, const TokenList* tokens);

}  // namespace millrace
