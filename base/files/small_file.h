// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace millrace {

// The content of a regular file of at most `most` bytes: a pipe could block the caller without end.
// The error does not name the file.
Result<std::string, std::string> read_small_file(const std::string& path, std::size_t most);

// The same for a file with a secret: only its owner may read or write it (mode 0600). Its group may
// read it too (0640) if it belongs to root: so root can give it to a service that runs as another
// user.
Result<std::string, std::string> read_secret_file(const std::string& path, std::size_t most);

}  // namespace millrace
