// SPDX-License-Identifier: Apache-2.0
#include "transport/addresses/proxy_header.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "transport/addresses/proxy_list.h"

namespace millrace {
namespace {

namespace ip = boost::asio::ip;
using Endpoint = ip::tcp::endpoint;
using Fault = ProxyHeader::Fault;

constexpr unsigned char signature[12] = {'\r', '\n', '\r', '\n', 0,   '\r',
                                         '\n', 'Q',  'U',  'I',  'T', '\n'};
// The byte after the signature: version 2 and a command.
constexpr unsigned local = 0x20;  // a connection of the proxy itself
constexpr unsigned proxied = 0x21;
// The byte after it: an address family and a transport, each with a few values.
constexpr unsigned tcp_v4 = 0x11;
constexpr unsigned tcp_v6 = 0x21;
constexpr unsigned most_family = 3;     // a Unix socket
constexpr unsigned most_transport = 2;  // datagrams

unsigned byte_at(Bytes bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }

std::uint16_t number_at(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(byte_at(bytes, at) << 8 | byte_at(bytes, at + 1));
}

// Reads the source and skips the destination: two addresses, then two ports.
template <class Address>
Result<std::optional<Endpoint>, Fault> source(Bytes rest) {
  typename Address::bytes_type address;
  constexpr std::size_t size = sizeof address;
  if (rest.size() < 2 * size + 4) return Fault::malformed;
  std::memcpy(address.data(), rest.data(), size);
  return std::optional(Endpoint(unmapped(Address(address)), number_at(rest, 2 * size)));
}

}  // namespace

Result<std::size_t, Fault> ProxyHeader::rest_bytes(Bytes head) {
  assert(head.size() == head_bytes);
  if (!std::ranges::equal(head.first(sizeof signature), std::as_bytes(std::span(signature))))
    return Fault::malformed;
  const unsigned command = byte_at(head, 12);
  if (command != local && command != proxied) return Fault::malformed;
  const unsigned family = byte_at(head, 13);
  if (family >> 4 > most_family || (family & 15) > most_transport) return Fault::malformed;
  const std::size_t rest = number_at(head, 14);
  if (rest > most_rest_bytes) return Fault::too_long;
  return rest;
}

Result<std::optional<Endpoint>, Fault> ProxyHeader::client(Bytes head, Bytes rest) {
  assert(head.size() == head_bytes);
  if (byte_at(head, 12) == local) return std::optional<Endpoint>();
  switch (byte_at(head, 13)) {
    case tcp_v4: return source<ip::address_v4>(rest);
    case tcp_v6: return source<ip::address_v6>(rest);
    default: return std::optional<Endpoint>();
  }
}

}  // namespace millrace
