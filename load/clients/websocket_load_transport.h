// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "load/clients/load_transport.h"
#include "load/clients/websocket_client.h"
#include "load/protocols/client_protocol.h"
#include "transport/net/net.h"
#include "transport/websocket/client.h"

namespace millrace::load {

// Streams over WebSocket: one connection for each client, watched by one epoll. A stream that
// resumes connects again when its connection is lost. Confined to one thread.
class WebSocketLoadTransport final : public LoadTransport {
 public:
  // Client indices are below `clients`. Throws std::runtime_error if the service is not found.
  WebSocketLoadTransport(CheckedAccess access, std::unique_ptr<ClientProtocol> protocol,
                         std::uint32_t clients);

  void open(std::uint32_t client, const std::string& name) override;
  [[nodiscard]] bool send(std::uint32_t client, Bytes frames) override;
  void commit(std::uint32_t client, Time due) override;
  void end(std::uint32_t client) override;
  bool cut(std::uint32_t client, const Cut& cut) override;
  void disconnect(std::uint32_t client) override;
  void poll(Time until, ClientSink& sink) override;

 private:
  struct ClientConnection {
    std::unique_ptr<ClientSession> session;
    std::optional<WebSocketClient> client;  // nullopt: none, or a stream that resumes waits
    std::uint32_t generation = 0;           // distinguishes events of an earlier socket
    bool watched_to_write = false;
  };
  // To do at this time, if the connection is still the same: connect again, or cut an attempt that
  // has had no answer.
  struct Attempt {
    Time at;
    std::uint32_t client = 0, generation = 0;
    bool gives_up = false;  // the stream is broken
    bool operator>(const Attempt& other) const { return at > other.at; }
  };

  // 0, or the errno.
  int connect(std::uint32_t client, const RequestedStream& request);
  // The connection is over. Further events of it are ignored.
  void drop(std::uint32_t client);
  void settle(std::uint32_t client);
  void lose(std::uint32_t client, Time now);
  void run_attempts(Time now, ClientSink& sink);
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
  std::priority_queue<Attempt, std::vector<Attempt>, std::greater<>> attempts_;
  WebSocketScratch scratch_;
};

}  // namespace millrace::load
