// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/clients/client_door.h"
#include "load/clients/websocket_client.h"
#include "schemas/stream_request.h"
#include "transport/net/file_descriptor.h"
#include "transport/net/net.h"
#include "transport/websocket/client.h"

namespace millrace::load {

// WebSocket connections, one for each place, watched by one epoll.
class WebSocketDoor final : public ClientDoor {
 public:
  // `request` is that of every stream, but for its name; places are below `places`. Throws
  // std::runtime_error where the service is not found.
  WebSocketDoor(const ServiceUrl& service, StreamRequest request, std::uint32_t places);

  void open(std::uint32_t place, const std::string& name) override;
  [[nodiscard]] bool send(std::uint32_t place, Bytes frames) override;
  void end(std::uint32_t place) override;
  void vanish(std::uint32_t place) override;
  void poll(Time until, ClientSink& sink) override;

 private:
  struct Place {
    std::optional<WebSocketClient> client;
    std::uint32_t life = 0;  // tells events of an earlier socket
    bool watched_to_write = false;
  };

  std::string upgrade(const std::string& name);
  void watch(std::uint32_t place, int operation);
  void watch_as_wanted(std::uint32_t place);
  void refuse_unreachable(ClientSink& sink);

  const std::string host_;
  StreamRequest request_;
  const Tcp::endpoint service_;
  FileDescriptor epoll_;
  std::vector<Place> places_;
  std::vector<std::pair<std::uint32_t, int>> unreachable_;  // connects that failed at once
  WebSocketScratch scratch_;
};

}  // namespace millrace::load
