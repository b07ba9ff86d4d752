// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "service/config/address.h"
#include "transport/net/net.h"

namespace millrace {

// The endpoint of an address of the configuration.
inline Tcp::endpoint endpoint_of(const TcpAddress& address) {
  return {net::ip::make_address(address.host), address.port};
}

// Makes a listener with `make`. The message of an error begins with the listener's key.
template <class Make>
auto make_listener(std::string_view key, const Make& make) {
  try {
    return make();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("listen." + std::string(key) + ": " + error.what());
  }
}

}  // namespace millrace
