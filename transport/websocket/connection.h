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

// A connection that carries messages. One coroutine reads: it calls next(), and waits for
// readable() if next() returns nullopt. Another one writes: it adds messages, and waits for
// writable() until flush() has written them. Both must have returned before the connection is
// destroyed. Every wait ends soon after abort(). Confined to one thread.
class Connection {
 public:
  enum class Kind : std::uint8_t { text, binary, ping };  // pings are only sent

  struct Message {
    Kind kind = Kind::binary;
    Bytes bytes;  // valid until the caller calls next() again or waits for anything
    // When its last byte was read or the messages before it were processed, whichever is later.
    Time arrived;
    std::string_view text() const { return text_in(bytes); }
  };

  // How the connection ended.
  struct Ended {
    enum class How : std::uint8_t {
      closed,       // the peer sent a close
      lost,         // the connection ended without a close
      half_closed,  // the peer ended its direction between two messages, without a close
      too_big,      // we ended it: a message was over the limit
      protocol,     // we ended it: the peer violated the protocol
    };
    How how = How::lost;
    std::uint16_t code = 0;  // with `closed`: the peer's close code, 1005 if it gave none
  };

  using Received = std::variant<Message, Ended>;

  virtual ~Connection() = default;

  // The next message, or the end, after which next() must not be called. Nullopt: wait for
  // readable(). Answers the peer's pings.
  virtual std::optional<Received> next() = 0;
  // Returns when next() may have another message, or at abort().
  virtual Task<> readable() = 0;

  // True if other connections should be served before this one continues, also in the middle of a
  // message. Then readable() returns when they were.
  virtual bool is_turn_over() { return false; }

  // Adds a message to those that flush() writes, or drops it after close(). A message of more than
  // `most_copied` bytes is not copied. Requires: until flush() returns another value than `later`,
  // its bytes stay valid, and no further message is added.
  static constexpr std::size_t most_copied = 32 * 1024;
  virtual void add(Kind kind, std::string_view bytes) = 0;
  // Adds a close. Nothing can be sent afterwards. next() still returns the peer's messages until
  // the peer closes too.
  virtual void close(std::uint16_t code, std::string_view reason) = 0;

  enum class Flushed : std::uint8_t {
    all,     // everything is written, or dropped because the peer has closed the connection
    later,   // the socket is full: wait for writable()
    failed,  // the connection has ended
  };
  virtual Flushed flush() = 0;
  virtual Task<> writable() = 0;

  // For callers that wait for each operation. Sending returns false if the connection has ended.
  Task<Received> receive();
  Task<bool> send(Kind kind, std::string_view bytes);
  Task<bool> flushed();

  // After next() returned the end: reads and drops further bytes until the peer closes the
  // connection too, so that the peer can receive everything that was sent. Has no time limit;
  // abort() ends it.
  virtual Task<> linger() = 0;

  // Cuts the connection.
  virtual void abort() = 0;

  // The time when a write found that the peer had closed the connection; nullopt before that. From
  // then on output is dropped. Messages that the peer sent before are still received.
  virtual std::optional<Time> peer_closed_since() const = 0;

  // True if the connection was reset. Asks the socket, so it also works while nothing is read.
  virtual bool is_reset() = 0;

  // Pings, pongs and closes of the peer so far.
  virtual std::uint64_t controls() const = 0;
  // Bytes that the reader has examined so far, those of an incomplete message too.
  virtual std::uint64_t examined() const = 0;
  // Bytes that have arrived after these, which it examines as soon as it continues.
  virtual std::size_t unexamined() = 0;

  // Bytes that were written to the socket and that the peer's host has not acknowledged.
  virtual std::size_t unacknowledged() = 0;

  // The time when a message, ping, pong or close was last received completely.
  virtual Time last_received() const = 0;
  // The time since which a message is incomplete; nullopt if none is.
  virtual std::optional<Time> assembling_since() const = 0;
  // The time since which the writer waits for the socket to accept a byte; nullopt if it does not
  // wait.
  virtual std::optional<Time> sending_since() const = 0;
};

}  // namespace millrace
