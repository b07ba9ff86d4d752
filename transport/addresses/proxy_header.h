// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"

namespace millrace {

// The header of version 2 of the PROXY protocol (binary), which a proxy sends as the first bytes of
// a connection: https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt. It has `head_bytes`,
// and as many more bytes as these say. Extensions (TLVs) are ignored. Pure.
struct ProxyHeader {
  enum class Fault : std::uint8_t { malformed, too_long };

  static constexpr std::size_t head_bytes = 16;
  static constexpr std::size_t most_rest_bytes = 520;  // addresses and extensions
  // The first byte of the header. No request and no TLS handshake begins with it.
  static constexpr std::byte first_byte{'\r'};

  // The number of bytes after the head. Requires: `head` has head_bytes.
  static Result<std::size_t, Fault> rest_bytes(Bytes head);
  // The client that the proxy names. Nullopt: it names none, as in its own health checks.
  // Requires: rest_bytes() of the same head is the size of `rest`.
  static Result<std::optional<boost::asio::ip::tcp::endpoint>, Fault> client(Bytes head,
                                                                             Bytes rest);
};

}  // namespace millrace
