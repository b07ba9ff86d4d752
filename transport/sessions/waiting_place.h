// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

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
  WaitingPlace(ClientGate& gate, TransportStats& stats) : gate_(gate), stats_(stats) {}
  ~WaitingPlace() { leave(); }
  WaitingPlace(const WaitingPlace&) = delete;
  WaitingPlace& operator=(const WaitingPlace&) = delete;

  // Takes or leaves the place, as the conversation has no stream or one. Returns the error with
  // which the connection is closed if it may not wait any more. Its client receives only the close,
  // and may connect again: it has lost nothing. Call it several times a second.
  std::optional<ErrorCode> check(const Conversation& conversation, Time now);

 private:
  void leave();

  ClientGate& gate_;
  TransportStats& stats_;
  std::optional<Time> since_;  // nullopt: the connection has a stream
  Share share_;
};

}  // namespace millrace
