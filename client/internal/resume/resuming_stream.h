// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/result_head.h"
#include "base/time.h"
#include "client/internal/resume/message_order.h"
#include "client/internal/resume/resend_buffer.h"
#include "schemas/client_messages.h"
#include "schemas/server_messages.h"
#include "schemas/stream_request.h"

namespace millrace {

// The part of a stream that outlives its connection: its input (ResendBuffer), the order of its
// messages (MessageOrder), and the token that resumes it. A service that does not resume sends no
// token: then nothing is kept and each message is delivered.
//
// Does no I/O. Confined to the client's thread.
class ResumingStream {
 public:
  using Verdict = MessageOrder::Verdict;

  // As ResendBuffer.
  ResumingStream(bool packets, std::string options)
      : packets_(packets), outgoing_(packets, std::move(options)) {}

  // `ready` over the first connection.
  void open(const StreamReady& ready, Time now);
  void open(const ServerMessage& ready, Time now) { open(parts_of(ready), now); }
  // `ready` over a later one. False if it is invalid.
  [[nodiscard]] bool resume(const StreamReady& ready, Time now);
  [[nodiscard]] bool resume(const ServerMessage& ready, Time now) {
    return resume(parts_of(ready), now);
  }

  // The service has given a token: both sides count and acknowledge messages.
  bool has_token() const { return !token_.empty(); }
  // The next connection can continue the stream.
  bool can_resume() const { return has_token() && outgoing_.keeps(); }
  // For the request of the next connection.
  Resumption resumption() const;

  // A message from the service, except `ready`.
  Verdict receive(const ServerMessage& message);
  Verdict receive(const client_protocol::ToClient& message);

  ResendBuffer& outgoing() { return outgoing_; }
  const ResendBuffer& outgoing() const { return outgoing_; }
  MessageOrder& order() { return order_; }
  const MessageOrder& order() const { return order_; }

  // True if, since the last call, input or a message has arrived for the first time.
  bool has_progressed();

 private:
  struct Progress {
    std::uint64_t messages = 0, acked_frames = 0, acked_commands = 0, frames = 0, commands = 0;
    bool operator==(const Progress&) const = default;
  };
  struct Receiver;

  static StreamReady parts_of(const ServerMessage& ready);
  Verdict receive(const std::optional<MessageOrder::Place>& place,
                  const std::optional<ResumePoint>& point);
  Verdict receive_goaway();

  const bool packets_;
  ResendBuffer outgoing_;
  MessageOrder order_;
  std::string token_;  // a secret; empty: the stream cannot be resumed
  Progress progress_;
  bool goaway_ = false;  // it was received
};

}  // namespace millrace
