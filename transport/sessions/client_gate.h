// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/files/current.h"
#include "transport/access/client_access.h"
#include "transport/addresses/address_limits.h"
#include "transport/addresses/proxy_list.h"
#include "transport/http/page_file.h"
#include "transport/net/tls/tls_context.h"

namespace millrace {

// Decides which client connections the process accepts. All its listeners share one gate.
//
// Thread-safe.
struct ClientGate {
  Budget sockets;                            // client sockets, including those before their upgrade
  AddressLimits addresses{};                 // limits of each client address
  const ProxyList proxies{};                 // are believed about the addresses of their clients
  Budget waiting{0};                         // WebSocket connections without a stream
  const std::vector<std::string> origins{};  // origins of the web pages that may open streams
  // The files of the web page that is served, and that may open streams. Empty: no page.
  const std::span<const PageFile> page{};
  const std::string pipelines{};  // the body of GET /v1/pipelines, JSON
  ClientAccess access{};          // identifies clients, and gives them their rights
  Current<TlsContext> tls{};      // for the next WebSocket connections; null: without TLS
  // The most connections over ZeroMQ. Accessed with relaxed order: it guards no other data.
  std::atomic<std::uint64_t> zeromq_connections = 10'000;
  // While it is true, new connections are refused before any byte is read. Relaxed as above.
  std::atomic<bool> memory_short = false;
};

}  // namespace millrace
