// SPDX-License-Identifier: Apache-2.0
#include "transport/addresses/proxy_list.h"

#include <algorithm>
#include <boost/asio/ip/network_v4.hpp>
#include <string_view>
#include <utility>

#include "transport/http/query_parameters.h"

namespace millrace {
namespace {

namespace ip = boost::asio::ip;

ip::address_v6 mapped(const IpAddress& address) {
  return address.is_v4() ? ip::make_address_v6(ip::v4_mapped, address.to_v4()) : address.to_v6();
}

std::optional<ip::network_v6> parse_network(const std::string& text) {
  const auto slash = text.find('/');
  boost::system::error_code error;
  const auto address = ip::make_address(text.substr(0, slash), error);
  if (error || text.find_first_of(std::string_view("%\0", 2)) != text.npos) return std::nullopt;
  const unsigned short longest = address.is_v4() ? 32 : 128;
  auto length = longest;
  if (slash != text.npos) {
    const auto number = number_in<unsigned short>(std::string_view(text).substr(slash + 1));
    if (!number || *number > longest) return std::nullopt;
    length = *number;
  }
  const ip::network_v6 network(mapped(address),
                               static_cast<unsigned short>(length + 128 - longest));
  return network == network.canonical() ? std::optional(network) : std::nullopt;
}

}  // namespace

IpAddress unmapped(const IpAddress& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return ip::make_address_v4(ip::v4_mapped, address.to_v6());
}

std::optional<ProxyList> ProxyList::parse(const std::vector<std::string>& networks) {
  ProxyList list;
  for (const std::string& text : networks) {
    auto network = parse_network(text);
    if (!network) return std::nullopt;
    list.networks_.push_back(*network);
  }
  return list;
}

bool ProxyList::contains(const IpAddress& address) const {
  if (networks_.empty()) return false;
  const ip::address_v6 searched(mapped(address).to_bytes());  // without the scope of a link
  return std::ranges::any_of(networks_, [&](const ip::network_v6& network) {
    return ip::network_v6(searched, network.prefix_length()).canonical() == network;
  });
}

}  // namespace millrace
