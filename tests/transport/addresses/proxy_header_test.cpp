// SPDX-License-Identifier: Apache-2.0
#include "transport/addresses/proxy_header.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

using namespace millrace;
using namespace std::string_literals;

namespace {

const std::string signature = "\r\n\r\n\0\r\nQUIT\n"s;
// From the captured headers of HAProxy 2.6 with `send-proxy-v2`.
const std::string v4 =
    signature + "\x21\x11\x00\x0c"s + "\x7f\0\0\x09\x7f\0\0\x01\xa8\x6e\x46\x51"s;
const std::string v6 = signature + "\x21\x21\x00\x24"s + "\x20\x01\x0d\xb8"s +
                       std::string(11, '\0') + "\x01"s + std::string(15, '\0') +
                       "\x01\x9c\x40\x01\xbb"s;

// The client that the header names: "none", or the fault.
std::string client_in(std::string_view header) {
  const Bytes bytes = bytes_in(header);
  const Bytes head = bytes.first(ProxyHeader::head_bytes);
  const auto rest = ProxyHeader::rest_bytes(head);
  if (!rest) return rest.error() == ProxyHeader::Fault::too_long ? "too long" : "malformed";
  REQUIRE(*rest == bytes.size() - ProxyHeader::head_bytes);
  const auto named = ProxyHeader::client(head, bytes.subspan(ProxyHeader::head_bytes));
  if (!named) return "malformed";
  if (!*named) return "none";
  return (*named)->address().to_string() + " " + std::to_string((*named)->port());
}

std::string with(std::string header, std::size_t at, char value) {
  header[at] = value;
  return header;
}

}  // namespace

TEST_CASE("the client of a header has its address and its port") {
  CHECK(client_in(v4) == "127.0.0.9 43118");
  CHECK(client_in(v6) == "2001:db8::1 40000");
}

TEST_CASE("an IPv4 address that is mapped into IPv6 is an IPv4 address") {
  std::string mapped = v6;
  mapped.replace(16, 16, std::string(10, '\0') + "\xff\xff\xc0\x00\x02\x01"s);
  CHECK(client_in(mapped) == "192.0.2.1 40000");
}

TEST_CASE("extensions behind the addresses are ignored") {
  CHECK(client_in(with(v4, 15, 0x0c + 7) + "\x04\x00\x04zzzz"s) == "127.0.0.9 43118");
}

TEST_CASE("a health check of a proxy names no client, and neither does another kind of address") {
  CHECK(client_in(with(v4, 12, 0x20)) == "none");
  CHECK(client_in(signature + "\x20\x00\x00\x00"s) == "none");
  CHECK(client_in(with(v4, 13, 0x00)) == "none");
  CHECK(client_in(with(v4, 13, 0x12)) == "none");
  CHECK(client_in(signature + "\x21\x31\x00\xd8"s + std::string(216, 'x')) == "none");
}

TEST_CASE("a header with fewer bytes than its addresses is malformed") {
  CHECK(client_in(with(v4, 15, 11).substr(0, 27)) == "malformed");
  CHECK(client_in(with(v6, 15, 35).substr(0, 51)) == "malformed");
  CHECK(client_in(signature + "\x21\x11\x00\x00"s) == "malformed");
}

TEST_CASE("each wrong byte of a head is found") {
  for (std::size_t at = 0; at < signature.size(); ++at)
    CHECK(client_in(with(v4, at, 'x')) == "malformed");
  CHECK(client_in(with(v4, 12, 0x22)) == "malformed");
  CHECK(client_in(with(v4, 12, 0x11)) == "malformed");
  CHECK(client_in(with(v4, 13, 0x41)) == "malformed");
  CHECK(client_in(with(v4, 13, 0x13)) == "malformed");
}

TEST_CASE("the length of a header is bounded") {
  CHECK(client_in(signature + "\x21\x11\x02\x08"s + std::string(520, '\0')) == "0.0.0.0 0");
  CHECK(client_in(signature + "\x21\x11\x02\x09"s) == "too long");
  CHECK(client_in(signature + "\x20\x00\xff\xff"s) == "too long");
}
