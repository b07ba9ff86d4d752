// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/time.h"
#include "transport/net/net.h"

namespace millrace {

// A connection that carries messages, and how it ended. One coroutine may be in receive() while
// another is in send() or close(); they must have returned before it is destroyed. Every wait ends
// soon after abort(). Confined to one thread.
class Connection {
 public:
  enum class Kind : std::uint8_t { text, binary, ping };  // pings are only sent

  struct Message {
    Kind kind = Kind::binary;
    Bytes bytes;   // until the next receive(), or its caller waits for anything
    Time arrived;  // its last byte was read, or those before it were taken, if that was later
    std::string_view text() const {
      return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
  };

  struct Ended {
    enum class How : std::uint8_t {
      closed,       // with a close from the peer
      lost,         // without one
      half_closed,  // without one, between two messages: the peer may still read
      too_big,      // by us: a message over the limit
      protocol,     // by us: what the peer sent is not the protocol
    };
    How how = How::lost;
    std::uint16_t code = 0;  // the peer's, where it closed; 1005 if it gave none
  };

  using Received = std::variant<Message, Ended>;

  virtual ~Connection() = default;

  // The next message, or the end: nothing is received after it.
  virtual Task<Received> receive() = 0;

  // False when the connection has ended. `bytes` live until it returns. With `more`, another
  // message follows at once, and this one may be held back until then. Without, it and those held
  // back before it were written when it returns.
  virtual Task<bool> send(Kind kind, std::string_view bytes, bool more) = 0;

  // Sends a close, and returns when the connection has ended. receive() must be waiting, or be
  // called until it tells the end. Nothing can be sent afterwards.
  virtual Task<> close(std::uint16_t code, std::string_view reason) = 0;

  // After receive() told the end: reads and drops what still comes until the peer has hung up too,
  // so that it gets all that was sent to it. As long as the peer likes; abort() ends it.
  virtual Task<> linger() = 0;

  // Cuts the connection.
  virtual void abort() = 0;

  // Since when the peer takes nothing more: what is sent to it is dropped. What it sent before it
  // hung up is still received.
  virtual std::optional<Time> hung_up_since() const = 0;

  // The connection was reset, as a look at the socket tells, also while nothing is read.
  virtual bool is_reset() = 0;

  // Bytes that were sent and that the peer has not taken yet.
  virtual std::size_t untaken() = 0;

  // For time limits. When a sign of the peer was last read whole, be it a ping; since when a
  // message is incomplete; since when a send or close waits for the peer to take a byte.
  virtual Time heard() const = 0;
  virtual std::optional<Time> assembling_since() const = 0;
  virtual std::optional<Time> sending_since() const = 0;
};

}  // namespace millrace
