// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/client.h"

#include <boost/asio/connect.hpp>

#include "transport/websocket/stream_target.h"

namespace millrace {

namespace {

// HOST[:PORT]; an IPv6 address stands in brackets, for its colons.
std::optional<ServiceUrl> parse_place(std::string_view place, std::string_view port) {
  if (place.find_first_of("/?#@") != std::string_view::npos) return std::nullopt;
  const std::size_t bracket = place.starts_with('[') ? 1 : 0;
  const auto end = place.find(bracket ? ']' : ':');
  if (bracket && end == std::string_view::npos) return std::nullopt;
  ServiceUrl parsed{.host = std::string(place.substr(bracket, end - bracket)),
                    .port = std::string(port)};
  const auto rest = end == std::string_view::npos ? "" : place.substr(end + bracket);
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
  constexpr std::string_view scheme = "ws://", streams = "/v1/stream";
  if (!url.starts_with(scheme)) return std::nullopt;
  url.remove_prefix(scheme.size());
  if (url.ends_with(streams)) {
    url.remove_suffix(streams.size());
  } else if (url.ends_with('/')) {
    url.remove_suffix(1);
  }
  return parse_place(url, "80");
}

std::optional<ServiceUrl> parse_tcp_url(std::string_view url) {
  constexpr std::string_view scheme = "tcp://";
  if (!url.starts_with(scheme)) return std::nullopt;
  return parse_place(url.substr(scheme.size()), "5555");
}

Task<Result<std::unique_ptr<Connection>, ConnectError>> open_stream(Executor executor,
                                                                    ServiceUrl url,
                                                                    StreamRequest request) {
  Resolver resolver(executor);
  const auto [unknown, places] = co_await resolver.async_resolve(url.host, url.port, no_throw);
  if (unknown) co_return ConnectError{.message = url.host + ": " + unknown.message()};
  Socket socket(executor);
  const auto [error, place] = co_await net::async_connect(socket, places, no_throw);
  if (error) co_return ConnectError{.message = url.host + ":" + url.port + ": " + error.message()};
  socket.set_option(Tcp::no_delay(true));
  const bool colons = url.host.find(':') != std::string::npos;
  std::string host = (colons ? "[" + url.host + "]" : url.host) + ":" + url.port;
  std::string target = stream_target(request);
  auto connected =
      co_await connect_websocket(std::move(socket), std::move(host), std::move(target));
  co_return connected;
}

}  // namespace millrace
