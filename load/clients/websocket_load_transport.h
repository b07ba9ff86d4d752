// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "load/clients/load_transport.h"
#include "load/clients/websocket_client.h"
#include "load/protocols/client_protocol.h"
#include "transport/net/net.h"
#include "transport/websocket/client.h"

namespace millrace::load {

// Streams over WebSocket: one connection for each client, watched by one epoll. Confined to one
// thread.
class WebSocketLoadTransport final : public LoadTransport {
 public:
  // Client indices are below `clients`. Throws std::runtime_error if the service is not found.
  WebSocketLoadTransport(CheckedAccess access, std::unique_ptr<ClientProtocol> protocol,
                         std::uint32_t clients);

  void open(std::uint32_t client, const std::string& name) override;
  [[nodiscard]] bool send(std::uint32_t client, Bytes frames) override;
  void commit(std::uint32_t client, Time due) override;
  void end(std::uint32_t client) override;
  void disconnect(std::uint32_t client) override;
  void poll(Time until, ClientSink& sink) override;

 private:
  struct ClientConnection {
    std::optional<WebSocketClient> client;
    std::uint32_t generation = 0;  // distinguishes events of an earlier socket
    bool watched_to_write = false;
  };

  std::string upgrade(const std::string& name);
  void watch(std::uint32_t client, int operation);
  void update_watch(std::uint32_t client);
  void refuse_unreachable(ClientSink& sink);

  const CheckedAccess access_;
  const std::unique_ptr<ClientProtocol> protocol_;
  const Tcp::endpoint service_;
  FileDescriptor epoll_;
  std::vector<ClientConnection> connections_;
  // Clients whose connect() failed at once, with the errno.
  std::vector<std::pair<std::uint32_t, int>> unreachable_;
  WebSocketScratch scratch_;
};

}  // namespace millrace::load
