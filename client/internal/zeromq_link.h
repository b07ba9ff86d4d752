// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "transport/net/net.h"
#include "transport/websocket/client.h"
#include "transport/zeromq/dealer.h"

namespace millrace {

// A client's connection over ZeroMQ: resolves the service's host name, connects within a time
// limit, and calls `turn` when there is something to do. Does not reconnect.
//
// Confined to the executor's thread.
class ZeromqLink {
 public:
  // Calls `turn` whenever a message may be received or sent, or the connection has ended. `turn`
  // may destroy the link; it is not called afterwards. The connection ends if it is not made within
  // `limit`, or if the service is silent for `silence` (as in ZeromqDealer).
  ZeromqLink(Executor executor, ServiceUrl service, Duration limit, Duration silence,
             std::function<void()> turn);
  ~ZeromqLink();
  ZeromqLink(const ZeromqLink&) = delete;
  ZeromqLink& operator=(const ZeromqLink&) = delete;

  // Processes the events of the connection and returns its state. After `ended`, messages that
  // arrived before can still be received.
  ZeromqDealer::State process_events();
  // Why the connection ended, for people.
  const std::string& reason() const;
  // As in ZeromqDealer; nullopt and false before there is a connection.
  std::optional<ZeromqMessage> receive();
  [[nodiscard]] bool send(Bytes message);
  // Posts a turn if the dealer has events. Must be called at the end of each turn, and after any
  // other call.
  void schedule_turn(bool to_receive, bool to_send);

 private:
  class Connection;
  std::shared_ptr<Connection> connection_;  // shared with coroutines, which end later
};

}  // namespace millrace
