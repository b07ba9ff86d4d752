// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "client/client.h"
#include "client/internal/transport.h"
#include "transport/websocket/client.h"

namespace millrace {

class WebsocketStream;

// Streams over WebSocket, each with its own connection. Confined to the client's thread.
class WebsocketTransport final : public Transport {
 public:
  // `settings` must outlive this object.
  WebsocketTransport(Executor executor, CheckedAccess access, const ClientSettings& settings);
  ~WebsocketTransport() override;

  void open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) override;
  void woken(std::uint64_t stream) override;
  void stop() override;

 private:
  Task<> serve(WebsocketStream& stream);

  const Executor executor_;
  const CheckedAccess access_;
  const ClientSettings& settings_;
  bool resumes_;  // false once the service has refused the parameter `resume`
  std::unordered_map<std::uint64_t, std::unique_ptr<WebsocketStream>> streams_;
};

}  // namespace millrace
