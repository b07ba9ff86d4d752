// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/time.h"
#include "transport/net/tls/stream_socket.h"
#include "transport/sessions/session_scope.h"

namespace millrace {

// Cuts a client that does not finish its upgrade in time. The socket outlives it. Confined to one
// thread.
class UpgradeLimit final : SessionScope::Watched {
 public:
  UpgradeLimit(SessionScope& scope, StreamSocket& socket)
      : Watched(scope), deadline_(Clock::now() + scope.limits().handshake), socket_(socket) {}

  void check(Time now) override {
    if (now <= deadline_) return;
    why_ = "the upgrade was not finished in time";
    abort();
  }
  void abort() override { socket_.close(); }
  void drain() override { abort(); }  // the client has received nothing yet

  std::string_view why() const { return why_; }  // why the socket was closed

 private:
  const Time deadline_;
  StreamSocket& socket_;
  std::string_view why_ = "the service is stopping";
};

}  // namespace millrace
