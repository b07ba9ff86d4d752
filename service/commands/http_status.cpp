// SPDX-License-Identifier: Apache-2.0
#include "service/commands/http_status.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <exception>
#include <optional>

#include "service/config/address.h"
#include "transport/http/client.h"

namespace millrace {

namespace {

using net::experimental::awaitable_operators::operator||;
using Outcome = Result<int, std::string>;

struct Url {
  TcpAddress address;
  std::string path;
};

std::optional<Url> parse_url(std::string_view text) {
  constexpr std::string_view scheme = "http://";
  if (!text.starts_with(scheme)) return std::nullopt;
  text.remove_prefix(scheme.size());
  const auto slash = std::min(text.find('/'), text.size());
  const auto address = parse_tcp(text.substr(0, slash));
  const std::string_view path = text.substr(slash);
  const auto printable = [](char c) { return c > ' ' && c < 127; };
  if (!address || !std::ranges::all_of(path, printable)) return std::nullopt;
  return Url{*address, path.empty() ? "/" : std::string(path)};
}

Task<Outcome> ask_within(Executor executor, Url url, Duration timeout) {
  const Tcp::endpoint service(net::ip::make_address(url.address.host), url.address.port);
  const std::string host = readable(url.address);
  Timer late(executor, timeout);
  auto first =
      co_await (get_status(executor, service, host, url.path) || late.async_wait(no_throw));
  if (first.index() == 0) co_return std::get<0>(std::move(first));
  co_return boost::system::error_code(net::error::timed_out).message();
}

}  // namespace

Result<int, std::string> http_status(const std::string& url, Duration timeout) {
  const auto target = parse_url(url);
  if (!target) return "\"" + url + "\" must be http://ADDRESS:PORT/PATH";
  net::io_context context(1);
  std::optional<Outcome> outcome;
  net::co_spawn(context, ask_within(context.get_executor(), *target, timeout),
                [&](std::exception_ptr thrown, Outcome given) {
                  if (thrown) std::rethrow_exception(thrown);
                  outcome = std::move(given);
                });
  context.run();
  if (!*outcome) return url + ": " + outcome->error();
  return *outcome;
}

}  // namespace millrace
