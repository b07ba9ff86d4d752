// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "commands/console/command_line.h"
#include "schemas/stream_request.h"

namespace millrace {

// The options --ca, --certificate, --key and --token-file of commands that are clients of a
// service.
struct AccessOptions {
  std::string ca, certificate, key, token_file;

  void add_to(Command& command);
  bool given() const { return !(ca + certificate + key + token_file).empty(); }
  // Reads the token. Throws std::invalid_argument if the file has none.
  ServiceAccess access() const;
};

}  // namespace millrace
