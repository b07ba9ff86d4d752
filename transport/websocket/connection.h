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

// A connection that carries messages, and how it ended. One coroutine reads: it takes messages by
// next(), and waits for readable() when there is none. Another one writes: it adds messages, and
// waits for writable() until flush() has written them. Both must have returned before the
// connection is destroyed. Every wait ends soon after abort(). Confined to one thread.
class Connection {
 public:
  enum class Kind : std::uint8_t { text, binary, ping };  // pings are only sent

  struct Message {
    Kind kind = Kind::binary;
    Bytes bytes;   // until the next call of next(), or its caller waits for anything
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

  // The next message, or the end: next() is not called after it. Nullopt: wait for readable().
  // Pings are answered in here.
  virtual std::optional<Received> next() = 0;
  // Returns when next() may have more to give, or at abort().
  virtual Task<> readable() = 0;

  // Adds a message to those that flush() writes, or drops it after close(). A message of more than
  // `most_copied` bytes is not copied: it lives until flush() has returned another value than
  // `later`, and nothing is added before that.
  static constexpr std::size_t most_copied = 32 * 1024;
  virtual void add(Kind kind, std::string_view bytes) = 0;
  // Adds a close. Nothing can be sent afterwards; next() still gives what the peer sends until it
  // closes too.
  virtual void close(std::uint16_t code, std::string_view reason) = 0;

  enum class Flushed : std::uint8_t {
    all,     // or dropped, because the peer has hung up
    later,   // the peer takes no more at present: wait for writable()
    failed,  // the connection has ended
  };
  virtual Flushed flush() = 0;
  virtual Task<> writable() = 0;

  // For a caller that does one thing at a time. Sending returns false if the connection has ended.
  Task<Received> receive();
  Task<bool> send(Kind kind, std::string_view bytes);
  Task<bool> flushed();

  // After next() gave the end: reads and drops what still comes until the peer has hung up too,
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
  // message is incomplete; since when the writer waits for the peer to take a byte.
  virtual Time heard() const = 0;
  virtual std::optional<Time> assembling_since() const = 0;
  virtual std::optional<Time> sending_since() const = 0;
};

}  // namespace millrace
