// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/stats.h"
#include "schemas/client_codec.h"
#include "transport/sessions/peer_wire.h"

namespace millrace {

class PeerStream;

// What one peer is still to be told, of all its streams, in order. It has no bound of its own: who
// puts something in keeps to his. Wire, encoder and gauge outlive it. Allocates nothing in steady
// state. Confined to one thread.
class PeerOutbox {
 public:
  // A message: whose it is, if any stream's.
  struct Label {
    PeerStream* stream = nullptr;
    std::size_t bytes = 0;
    bool is_result = false;
  };

  // `unsent` counts bytes.
  PeerOutbox(PeerWire& wire, client_protocol::Encoder& encoder, Gauge& unsent)
      : wire_(wire), encoder_(encoder), gauge_(unsent) {}
  ~PeerOutbox();
  PeerOutbox(const PeerOutbox&) = delete;
  PeerOutbox& operator=(const PeerOutbox&) = delete;

  // Returns the length of the message. Throws std::bad_alloc: nothing was put.
  template <class Message>
  std::size_t put(const Message& message, PeerStream* stream = nullptr, bool is_result = false) {
    return append(encoder_.encode(message), stream, is_result);
  }

  // Gives the next message to the wire. Nothing where none waits, or the wire takes none.
  std::optional<Label> send_next();

  // Drops all messages of the stream that the wire has not taken. Throws nothing.
  void drop(const PeerStream& stream) noexcept;

  // The peer's address, as PeerWire has it.
  std::string peer() const { return wire_.address(); }
  bool empty() const { return sending_.labels.size() == next_ && waiting_.labels.empty(); }
  std::size_t unsent() const { return unsent_; }  // bytes
  std::size_t unsent_of_nobody() const { return of_nobody_; }

 private:
  // One behind the other in memory that is used again.
  struct Batch {
    std::string bytes;
    std::vector<Label> labels;
  };
  static constexpr std::size_t kept_ = 16 * 1024;

  std::size_t append(Bytes message, PeerStream* stream, bool is_result);
  void take_waiting();
  std::size_t drop(const PeerStream& stream, Batch& batch, std::size_t first, std::size_t at);

  PeerWire& wire_;
  client_protocol::Encoder& encoder_;
  Gauge& gauge_;
  Batch sending_;  // sent up to label next_, and byte at_
  Batch waiting_;  // what came since
  std::size_t next_ = 0;
  std::size_t at_ = 0;
  std::size_t unsent_ = 0;
  std::size_t of_nobody_ = 0;  // of them, of no stream
};

}  // namespace millrace
