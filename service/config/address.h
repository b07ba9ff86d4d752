// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/config/toml/section.h"

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

// A listener address, and the key that sets it.
struct Listener {
  std::string_view key;
  TcpAddress address;
  bool encrypted = false;
  std::string_view encrypted_by = {};  // the keys that encrypt it; empty: it cannot be encrypted
};
// Reports an address off loopback that is not encrypted unless `plain` allows it, because everyone
// on the network can read the data, and an address that another listener has. `section` has the
// listener's key.
void check_listener(Section& section, const Listener& listener, const std::vector<Listener>& others,
                    bool plain);

// The address at this key of [listen].
TcpAddress read_address(Section& listen, std::string_view key, const TcpAddress& fallback);
// The same as tcp://ADDRESS:PORT; nullopt for "off".
std::optional<TcpAddress> read_tcp_or_off(Section& listen, std::string_view key,
                                          const std::optional<TcpAddress>& fallback);

// `names` of [listen]: host names by which browsers may reach the admin listener.
std::vector<std::string> read_names(Section& listen);

}  // namespace millrace
