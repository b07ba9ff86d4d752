// SPDX-License-Identifier: Apache-2.0
#include "transport/client.h"

#include <boost/asio/connect.hpp>

namespace millrace {

std::optional<ServiceUrl> parse_service_url(std::string_view url) {
  constexpr std::string_view scheme = "ws://";
  if (!url.starts_with(scheme)) return std::nullopt;
  url.remove_prefix(scheme.size());
  if (url.ends_with('/')) url.remove_suffix(1);
  if (url.find_first_of("/?#@") != std::string_view::npos) return std::nullopt;

  // An IPv6 address stands in brackets, for its colons.
  const bool bracketed = url.starts_with('[');
  const auto end = bracketed ? url.find(']') : url.find(':');
  if (bracketed && end == std::string_view::npos) return std::nullopt;
  ServiceUrl parsed{.host = std::string(url.substr(bracketed ? 1 : 0, end - (bracketed ? 1 : 0)))};
  const auto rest = end == std::string_view::npos ? "" : url.substr(end + (bracketed ? 1 : 0));
  if (!rest.empty()) {
    if (rest.front() != ':' || rest.size() < 2 ||
        rest.find_first_not_of("0123456789", 1) != std::string_view::npos)
      return std::nullopt;
    parsed.port = rest.substr(1);
  }
  if (parsed.host.empty()) return std::nullopt;
  return parsed;
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
