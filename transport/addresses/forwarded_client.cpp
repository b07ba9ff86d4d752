// SPDX-License-Identifier: Apache-2.0
#include "transport/addresses/forwarded_client.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/http/query_parameters.h"

namespace millrace {
namespace {

bool is_port(std::string_view text) { return number_in<std::uint16_t>(text).has_value(); }

// The address of an entry like "192.0.2.1", "192.0.2.1:40000", "2001:db8::1" or
// "[2001:db8::1]:40000", without its port; empty if it has another form.
std::string_view without_port(std::string_view entry) {
  if (entry.starts_with('[')) {
    const auto end = entry.find(']');
    if (end == entry.npos) return {};
    const auto rest = entry.substr(end + 1);
    const bool is_whole = rest.empty() || (rest.front() == ':' && is_port(rest.substr(1)));
    return is_whole ? entry.substr(1, end - 1) : std::string_view();
  }
  const auto colon = entry.find(':');
  if (colon == entry.npos || entry.find(':', colon + 1) != entry.npos) return entry;
  return is_port(entry.substr(colon + 1)) ? entry.substr(0, colon) : std::string_view();
}

std::optional<IpAddress> parse_entry(std::string_view entry) {
  const std::string text(without_port(entry));
  if (text.find_first_of(std::string_view("%\0", 2)) != text.npos) return std::nullopt;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(text, error);
  if (error || address.is_unspecified()) return std::nullopt;
  return unmapped(address);
}

}  // namespace

IpAddress forwarded_client(const HttpQuery& query, const IpAddress& peer,
                           const ProxyList& proxies) {
  IpAddress client = unmapped(peer);
  if (!proxies.contains(client)) return client;
  const auto entries = query.items("X-Forwarded-For");
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const auto address = parse_entry(*entry);
    if (!address) break;
    client = *address;
    if (!proxies.contains(client)) break;
  }
  return client;
}

}  // namespace millrace
