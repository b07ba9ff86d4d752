// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "transport/client_messages.h"
#include "transport/connection.h"
#include "transport/session_outbox.h"
#include "transport/stream_sink.h"

namespace millrace {

// What one client says, brought to its stream: frames as they are, commands as calls. What comes
// after the client's own end is rejected, and nothing counts once its outbox is closing. Outbox,
// sink and stats outlive it. Confined to one thread.
class ClientInbox {
 public:
  ClientInbox(SessionOutbox& outbox, StreamSink& sink, DoorStats& stats)
      : outbox_(outbox), sink_(sink), stats_(stats) {}

  // What is wrong with the message, where it is none of the protocol: the stream cannot go on.
  [[nodiscard]] std::optional<std::string> take(const Connection::Message& message);

  // The client has said so.
  bool ended() const { return ended_; }

 private:
  void take_frames(const Connection::Message& message);
  void obey(const ClientMessage& command, Time arrived);

  SessionOutbox& outbox_;
  StreamSink& sink_;
  DoorStats& stats_;
  bool ended_ = false;
};

}  // namespace millrace
