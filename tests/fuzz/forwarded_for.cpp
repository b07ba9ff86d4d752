// SPDX-License-Identifier: Apache-2.0
// The field X-Forwarded-For of a request.
#include <string>

#include "tests/fuzz/target.h"
#include "transport/addresses/forwarded_client.h"

namespace millrace {
namespace {

using fuzz::require;

const ProxyList& proxies() {
  static const ProxyList list = *ProxyList::parse({"10.0.0.0/8", "fd00::/8"});
  return list;
}

IpAddress client(const std::string& forwarded, const IpAddress& peer) {
  const HttpQuery query{.method = "GET", .target = "/", .fields = {{"X-Forwarded-For", forwarded}}};
  return forwarded_client(query, peer, proxies());
}

void check(const std::string& text) {
  const auto proxy = boost::asio::ip::make_address("10.0.0.1");
  const auto other = boost::asio::ip::make_address("192.0.2.1");
  require(client(text, other) == other, "only a proxy is believed");
  const IpAddress found = client(text, proxy);
  require(found == unmapped(found), "an address has one form");
  require(client(text + ", 192.0.2.1", proxy) == other, "a client cannot change its address");
  require(client(text + ",192.0.2.1:7 , fd00::1", proxy) == other,
          "a client cannot change its address behind two proxies");
  require(client(text + ",unknown", proxy) == proxy, "an entry that is no address ends the search");
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  check(std::string(fuzz::text_of(bytes, size)));
  (void)ProxyList::parse({std::string(fuzz::text_of(bytes, size))});
  return 0;
}
