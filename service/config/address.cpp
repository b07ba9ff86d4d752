// SPDX-License-Identifier: Apache-2.0
#include "service/config/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>

namespace millrace {

namespace {

// The address in its one canonical form; nullopt if `host` is not an address of the family.
std::optional<std::string> canonical(const std::string& host, int family) {
  in6_addr address;
  char text[INET6_ADDRSTRLEN];
  if (inet_pton(family, host.c_str(), &address) != 1) return std::nullopt;
  return inet_ntop(family, &address, text, sizeof text);
}

bool is_v6(const std::string& host) { return host.find(':') != host.npos; }
bool is_any(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

bool is_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  });
}

}  // namespace

bool TcpAddress::loopback() const { return host.starts_with("127.") || host == "::1"; }

bool TcpAddress::conflicts_with(const TcpAddress& other) const {
  if (port != other.port || port == 0) return false;
  if (host == other.host) return true;
  // A listener on "::" accepts IPv4 too.
  if (host == "::" || other.host == "::") return true;
  return is_v6(host) == is_v6(other.host) && (is_any(host) || is_any(other.host));
}

std::optional<TcpAddress> parse_tcp(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos || text.find('\0') != text.npos) return std::nullopt;
  TcpAddress address;
  const std::string_view port = text.substr(colon + 1);
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc{} || stop != port.data() + port.size()) return std::nullopt;
  std::string host(text.substr(0, colon));
  const bool v6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (v6) host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  auto known = canonical(host, v6 ? AF_INET6 : AF_INET);
  if (!known) return std::nullopt;
  address.host = std::move(*known);
  return address;
}

std::string readable(const TcpAddress& address) {
  const std::string host = is_v6(address.host) ? "[" + address.host + "]" : address.host;
  return host + ":" + std::to_string(address.port);
}

void check_listener(Section& section, const Listener& listener, const std::vector<Listener>& others,
                    bool plain) {
  if (!listener.address.loopback() && !listener.encrypted && !plain)
    section.wrong(listener.key, "must be on loopback (127.0.0.1, [::1]); other addresses need " +
                                    std::string(listener.encrypted_by) +
                                    (listener.encrypted_by.empty() ? "" : ", or ") +
                                    "plain = true");
  for (const Listener& other : others)
    if (other.key != listener.key && other.address.conflicts_with(listener.address))
      section.wrong(listener.key, "must differ from " + std::string(other.key) + ", which is " +
                                      readable(other.address));
}

TcpAddress read_address(Section& listen, std::string_view key, const TcpAddress& fallback) {
  const auto address = parse_tcp(listen.text(key, readable(fallback)));
  if (!address) listen.wrong(key, "must be an address and a port, like 127.0.0.1:8080");
  return address.value_or(fallback);
}

std::optional<TcpAddress> read_tcp_or_off(Section& listen, std::string_view key,
                                          const std::optional<TcpAddress>& fallback) {
  constexpr std::string_view scheme = "tcp://";
  const std::string text =
      listen.text(key, fallback ? std::string(scheme) + readable(*fallback) : "off");
  if (text == "off") return std::nullopt;
  auto address = text.starts_with(scheme) ? parse_tcp(text.substr(scheme.size())) : std::nullopt;
  if (!address)
    listen.wrong(key, "must be \"off\" or tcp://ADDRESS:PORT, like tcp://127.0.0.1:5555");
  return address;
}

std::vector<std::string> read_names(Section& listen) {
  constexpr std::string_view allowed =
      R"(must be a list of host names in lower case without a port, like ["millrace.example"])";
  if (!listen.has("names")) return {};
  auto value = listen.text_or_texts("names", "", allowed);
  auto* names = std::get_if<std::vector<std::string>>(&value);
  if (names && std::ranges::all_of(*names, is_name)) return std::move(*names);
  listen.wrong("names", std::string(allowed));
  return {};
}

}  // namespace millrace
