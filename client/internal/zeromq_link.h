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

// A client's connection over ZeroMQ on its thread: finds the service by its name, connects within a
// time, and says when there is something to do. It connects once.
//
// Confined to the executor's thread.
class ZeromqLink {
 public:
  // `turn` is called whenever something may be received or sent, or has ended; it may destroy the
  // link, after which it is not called any more. `limit`: until it is connected; `silence`: of the
  // service, until the connection is lost.
  ZeromqLink(Executor executor, ServiceUrl service, Duration limit, Duration silence,
             std::function<void()> turn);
  ~ZeromqLink();
  ZeromqLink(const ZeromqLink&) = delete;
  ZeromqLink& operator=(const ZeromqLink&) = delete;

  // Takes in what has happened. What came before the end can still be received.
  ZeromqDealer::State follow();
  const std::string& reason() const;  // of the end
  std::optional<ZeromqMessage> receive();
  [[nodiscard]] bool send(Bytes message);
  // At the end of a turn, and after anything else: the next comes where it is worth it.
  void look_again(bool to_receive, bool to_send);

 private:
  class Waiting;
  std::shared_ptr<Waiting> waiting_;  // its coroutines end after it
};

}  // namespace millrace
