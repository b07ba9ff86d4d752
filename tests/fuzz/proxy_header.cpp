// SPDX-License-Identifier: Apache-2.0
// The first bytes of a connection from a proxy: version 2 of the PROXY protocol.
#include "transport/addresses/proxy_header.h"

#include "tests/fuzz/target.h"

namespace millrace {
namespace {

using fuzz::require;

void check(Bytes bytes) {
  if (bytes.size() < ProxyHeader::head_bytes) return;
  const Bytes head = bytes.first(ProxyHeader::head_bytes);
  const auto size = ProxyHeader::rest_bytes(head);
  require(!size || *size <= ProxyHeader::most_rest_bytes, "a header is bounded");
  require(!size || head.front() == ProxyHeader::first_byte, "a header has its first byte");
  const Bytes rest = bytes.subspan(head.size());
  if (!size || *size > rest.size()) return;
  const auto client = ProxyHeader::client(head, rest.first(*size));
  require(!client || !*client || *size >= 12, "a client has an address and a port");
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  millrace::check(millrace::fuzz::bytes_of(bytes, size));
  return 0;
}
