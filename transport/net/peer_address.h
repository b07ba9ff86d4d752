// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "transport/net/net.h"

namespace millrace {

// The address of the peer; port 0 if the connection is already lost.
inline Tcp::endpoint peer_of(const Socket& socket) {
  boost::system::error_code lost;
  const Tcp::endpoint peer = socket.remote_endpoint(lost);
  return lost ? Tcp::endpoint() : peer;
}

// For example "127.0.0.1:40000" or "[::1]:40000".
inline std::string text_of(const Tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" +
         std::to_string(endpoint.port());
}

// The same; "gone" for port 0.
inline std::string peer_text(const Tcp::endpoint& peer) {
  return peer.port() == 0 ? "gone" : text_of(peer);
}

}  // namespace millrace
