// SPDX-License-Identifier: Apache-2.0
#include "transport/http/host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <cctype>
#include <string_view>

namespace millrace {
namespace {

bool is_port(std::string_view text) {
  return text.empty() || (text[0] == ':' && std::ranges::all_of(text.substr(1), [](char c) {
                            return c >= '0' && c <= '9';
                          }));
}

bool is_loopback_v4(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool is_localhost(std::string_view name) { return boost::beast::iequals(name, "localhost"); }

// `localhost` or an address, with or without a port.
bool is_localhost_or_address(std::string_view host) {
  in_addr v4{};
  in6_addr v6{};
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    return end != host.npos && is_port(host.substr(end + 1)) &&
           ::inet_pton(AF_INET6, std::string(host.substr(1, end - 1)).c_str(), &v6) == 1;
  }
  const std::string name(host.substr(0, host.find(':')));
  return is_port(host.substr(name.size())) &&
         (is_localhost(name) || ::inet_pton(AF_INET, name.c_str(), &v4) == 1);
}

bool is_loopback_host(std::string_view host) {
  constexpr std::string_view loopback_v6 = "[::1]";
  if (host.starts_with(loopback_v6)) return is_port(host.substr(loopback_v6.size()));
  const std::string name(host.substr(0, host.find(':')));
  return is_port(host.substr(name.size())) && (is_localhost(name) || is_loopback_v4(name));
}

// A name without a port, of which a single label is enough.
bool is_known_name(std::string_view host, std::span<const std::string> names) {
  const std::string_view name = host.substr(0, host.find(':'));
  if (name.empty() || !is_port(host.substr(name.size()))) return false;
  const auto is_label = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  return std::ranges::all_of(name, is_label) ||
         std::ranges::any_of(
             names, [&](const std::string& known) { return boost::beast::iequals(name, known); });
}

}  // namespace

bool is_for_loopback(const HttpQuery& query) {
  return std::ranges::all_of(query.all("Host"), is_loopback_host);
}

bool is_for_listener(const HttpQuery& query, std::span<const std::string> names) {
  return std::ranges::all_of(query.all("Host"), [&](std::string_view host) {
    return is_localhost_or_address(host) || is_known_name(host, names);
  });
}

bool is_from(const HttpQuery& query, std::span<const std::string> origins) {
  return std::ranges::all_of(query.all("Origin"), [&](std::string_view origin) {
    return std::ranges::find(origins, origin) != origins.end();
  });
}

bool is_from_own_page(const HttpQuery& query) {
  const auto hosts = query.all("Host");
  if (hosts.size() != 1 || !is_localhost_or_address(hosts.front())) return false;
  const std::string host(hosts.front());
  const std::string own[] = {"http://" + host, "https://" + host};
  return is_from(query, own);
}

}  // namespace millrace
