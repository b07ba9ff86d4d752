// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq/bind.h"

#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "transport/net/listener.h"

namespace millrace {
namespace {

Tcp::endpoint endpoint_of(const std::string& endpoint) {
  constexpr std::string_view scheme = "tcp://";
  const std::size_t colon = endpoint.rfind(':');
  std::string host = endpoint.substr(scheme.size(), colon - scheme.size());
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return {net::ip::make_address(host),
          static_cast<std::uint16_t>(std::stoul(endpoint.substr(colon + 1)))};
}

}  // namespace

Acceptor listen_on_zeromq(const Executor& executor, const std::string& endpoint) {
  net::io_context* const contexts[] = {&executor.context()};
  try {
    return std::move(listen_on(endpoint_of(endpoint), contexts).front());
  } catch (const std::exception& error) {
    throw std::runtime_error(endpoint + ": " + error.what());
  }
}

}  // namespace millrace
