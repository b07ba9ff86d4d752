// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// The address of a listener. It is never a host name: what a listener binds must not depend on a
// name server.
struct TcpAddress {
  std::string host;        // IPv4 or IPv6, without brackets
  std::uint16_t port = 0;  // 0: any free port

  bool loopback() const;
  // True if one process cannot listen on both.
  bool conflicts_with(const TcpAddress& other) const;
  bool operator==(const TcpAddress&) const = default;
};

// Parses text like "127.0.0.1:8080", "[::1]:8080" or "localhost:8080". nullopt if it is invalid.
std::optional<TcpAddress> parse_tcp(std::string_view text);
// The address in the form that parse_tcp() accepts.
std::string readable(const TcpAddress& address);

}  // namespace millrace
