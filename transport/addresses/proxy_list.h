// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

using IpAddress = boost::asio::ip::address;

// An IPv4 address for one that is mapped into IPv6 (::ffff:192.0.2.1), which is how a listener on
// "::" sees it. Other addresses stay as they are.
IpAddress unmapped(const IpAddress& address);

// The networks of the proxies that are believed when they name the address of a client.
//
// Immutable after construction.
class ProxyList {
 public:
  ProxyList() = default;  // no proxy
  // Networks like "10.0.0.0/8", and addresses. Nullopt if one is invalid, or has bits set behind
  // its prefix.
  static std::optional<ProxyList> parse(const std::vector<std::string>& networks);

  bool contains(const IpAddress& address) const;
  bool empty() const { return networks_.empty(); }

 private:
  std::vector<boost::asio::ip::network_v6> networks_;  // those of IPv4 are mapped into IPv6
};

}  // namespace millrace
