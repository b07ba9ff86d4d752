// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/budget.h"
#include "base/error_code.h"
#include "base/time.h"
#include "transport/net/stats.h"
#include "transport/sessions/client_gate.h"
#include "transport/sessions/conversation.h"

namespace millrace {

// The place of a connection among those without a stream: their number and their time are limited,
// and they end first when memory is short. Gate and stats outlive it. Confined to one thread.
class WaitingPlace {
 public:
  struct Fault {
    ErrorCode code;
    std::string message;
  };

  WaitingPlace(ClientGate& gate, TransportStats& stats) : gate_(gate), stats_(stats) {}
  ~WaitingPlace() { leave(); }
  WaitingPlace(const WaitingPlace&) = delete;
  WaitingPlace& operator=(const WaitingPlace&) = delete;

  // Takes or leaves the place, as the conversation has no stream or one. Returns why the connection
  // may not wait any more. Call it several times a second.
  std::optional<Fault> check(const Conversation& conversation, Time now);

 private:
  void leave();

  ClientGate& gate_;
  TransportStats& stats_;
  std::optional<Time> since_;  // nullopt: the connection has a stream
  Share share_;
};

}  // namespace millrace
