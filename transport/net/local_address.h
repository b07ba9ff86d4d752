// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "transport/net/local_path.h"

namespace millrace {

// The address of the Unix socket at `path`. Throws std::invalid_argument if `path` is empty or too
// long.
inline sockaddr_un local_address(const std::string& path) {
  if (path.empty() || path.size() > max_local_path)
    throw std::invalid_argument("the path of a socket has 1 to " + std::to_string(max_local_path) +
                                " bytes: " + path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace millrace
