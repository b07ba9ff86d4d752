// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/checked_access.h"

#include <algorithm>
#include <array>
#include <boost/beast/core/string.hpp>
#include <stdexcept>
#include <string_view>

namespace millrace {
namespace {

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool consists_of(std::string_view text, std::string_view others) {
  return !text.empty() && std::ranges::all_of(text, [others](char c) {
    return is_alphanumeric(c) || others.find(c) != others.npos;
  });
}

// The client writes these fields itself, or a request for a WebSocket has none.
bool is_reserved(std::string_view name) {
  constexpr std::string_view prefix = "sec-websocket-";
  return boost::beast::iequals(name.substr(0, prefix.size()), prefix) ||
         std::ranges::any_of(std::array<std::string_view, 5>{"host", "connection", "upgrade",
                                                             "content-length", "transfer-encoding"},
                             [name](auto one) { return boost::beast::iequals(name, one); });
}

void check_header(const std::string& name, const std::string& value) {
  if (!consists_of(name, "!#$%&'*+-.^_`|~"))
    throw std::invalid_argument("headers: \"" + name + "\" must be the name of an HTTP field");
  if (is_reserved(name))
    throw std::invalid_argument("headers: " + name + " is set by the client itself");
  const auto is_control = [](unsigned char c) { return (c < ' ' && c != '\t') || c == 127; };
  if (std::ranges::any_of(value, is_control))
    throw std::invalid_argument("headers: the value of " + name + " has a control character");
}

// RFC 6750, 2.1.
void check_token(std::string_view token) {
  const auto last = token.find_last_not_of('=');
  if (!consists_of(token.substr(0, last == token.npos ? 0 : last + 1), "-._~+/"))
    throw std::invalid_argument(
        "the token must consist of letters, digits and -._~+/, with = at "
        "its end only");
}

std::string fields_of(const ServiceAccess& access) {
  std::string fields;
  const auto add = [&fields](std::string_view name, std::string_view value) {
    fields.append(name).append(": ").append(value).append("\r\n");
  };
  for (const auto& [name, value] : access.headers) {
    check_header(name, value);
    if (!access.token.empty() && boost::beast::iequals(name, "authorization"))
      throw std::invalid_argument("headers: Authorization cannot be given beside a token");
    add(name, value);
  }
  if (access.token.empty()) return fields;
  check_token(access.token);
  add("Authorization", "Bearer " + access.token);
  return fields;
}

bool has_files(const ServiceAccess& access) {
  return !access.ca.empty() || !access.certificate.empty() || !access.key.empty();
}

TlsContext context_of(const ServiceAccess& access) {
  try {
    return TlsContext::for_clients(
        {.certificate = access.certificate, .key = access.key, .ca = access.ca});
  } catch (const std::invalid_argument& error) {
    const std::string_view message = error.what();
    const auto begins_with = [message](const std::string& file) {
      return !file.empty() && message.starts_with(file + ": ");
    };
    std::string argument = "ca";
    if (begins_with(access.key)) argument = "key";
    if (begins_with(access.certificate)) argument = "certificate";
    throw std::invalid_argument(argument + ": " + error.what());
  }
}

// Parses HOST[:PORT]; an IPv6 address must be in brackets. `port` is the default.
std::optional<ServiceUrl> parse_address(std::string_view address, std::string_view port) {
  if (address.find_first_of("/?#@") != std::string_view::npos) return std::nullopt;
  const std::size_t bracket = address.starts_with('[') ? 1 : 0;
  const auto end = address.find(bracket ? ']' : ':');
  if (bracket && end == std::string_view::npos) return std::nullopt;
  ServiceUrl parsed{.host = std::string(address.substr(bracket, end - bracket)),
                    .port = std::string(port)};
  const auto rest = end == std::string_view::npos ? "" : address.substr(end + bracket);
  if (!rest.empty()) {
    if (rest.front() != ':' || rest.size() < 2 ||
        rest.find_first_not_of("0123456789", 1) != std::string_view::npos)
      return std::nullopt;
    parsed.port = rest.substr(1);
  }
  if (parsed.host.empty()) return std::nullopt;
  return parsed;
}

}  // namespace

std::optional<ServiceUrl> parse_service_url(std::string_view url) {
  constexpr std::string_view plain = "ws://", secure = "wss://", streams = "/v1/stream";
  const bool tls = url.starts_with(secure);
  if (!tls && !url.starts_with(plain)) return std::nullopt;
  url.remove_prefix(tls ? secure.size() : plain.size());
  if (url.ends_with(streams)) {
    url.remove_suffix(streams.size());
  } else if (url.ends_with('/')) {
    url.remove_suffix(1);
  }
  auto parsed = parse_address(url, tls ? "443" : "80");
  if (parsed) parsed->tls = tls;
  return parsed;
}

std::optional<ServiceUrl> parse_tcp_url(std::string_view url) {
  constexpr std::string_view scheme = "tcp://";
  if (!url.starts_with(scheme)) return std::nullopt;
  return parse_address(url.substr(scheme.size()), "5555");
}

std::string wrong_url(std::string_view url) {
  const bool parameters = url.find('?') != url.npos;
  std::string_view scheme = url.substr(0, url.find("://"));
  std::string_view rest = url.substr(scheme.size()).substr(0, url.substr(scheme.size()).find('?'));
  const std::size_t user = rest.rfind('@');
  std::string text = "\"" + std::string(scheme);
  text += user == rest.npos ? std::string(rest) : "://" + std::string(rest.substr(user + 1));
  text += "\" must be ws://HOST:PORT, wss://HOST:PORT or tcp://HOST:PORT";
  if (user != rest.npos) return text + ": give a user and a password in headers, or a token";
  return parameters ? text + ": give pipeline, rate and other parameters to open()" : text;
}

std::string ServiceUrl::host_field() const {
  const bool colons = host.find(':') != std::string::npos;
  return (colons ? "[" + host + "]" : host) + ":" + port;
}

std::string tcp_token(const ServiceAccess& access) {
  if (!access.headers.empty() || has_files(access))
    throw std::invalid_argument(
        "headers, ca, certificate and key cannot be used over tcp://, but over wss://");
  if (!access.token.empty()) check_token(access.token);
  return access.token;
}

CheckedAccess::CheckedAccess(ServiceUrl url, const ServiceAccess& access)
    : url_(std::move(url)), fields_(fields_of(access)) {
  if (!url_.tls && has_files(access))
    throw std::invalid_argument("ca, certificate and key need a URL with wss://");
  if (access.certificate.empty() != access.key.empty())
    throw std::invalid_argument("certificate and key must be given together");
  if (url_.tls) context_ = context_of(access);
}

std::unique_ptr<TlsSession> CheckedAccess::tls(int socket) const {
  return context_ ? std::make_unique<TlsSession>(*context_, socket, url_.host) : nullptr;
}

}  // namespace millrace
