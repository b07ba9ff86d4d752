// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// Where a listener listens. Addresses, not names: what is bound must not hang on a name server.
struct TcpAddress {
  std::string host;        // IPv4 or IPv6, without brackets
  std::uint16_t port = 0;  // 0: any free one

  bool loopback() const;
  // Both cannot be listened on.
  bool meets(const TcpAddress& other) const;
  bool operator==(const TcpAddress&) const = default;
};

// "127.0.0.1:8080", "[::1]:8080", "localhost:8080". Nothing where it is something else.
std::optional<TcpAddress> parse_tcp(std::string_view text);
std::string readable(const TcpAddress& address);

}  // namespace millrace
