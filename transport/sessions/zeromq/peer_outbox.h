// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/stats.h"
#include "schemas/client_codec.h"
#include "transport/sessions/zeromq/peer_wire.h"

namespace millrace {

class PeerStream;

// The queue of unsent messages to one peer, those of all its streams, in order. The queue itself
// has no limit: its users must limit what they enqueue. Wire, encoder and gauge outlive it.
// Allocates nothing in steady state. Confined to one thread.
class PeerOutbox {
 public:
  // A message in the queue.
  struct Label {
    PeerStream* stream = nullptr;  // null: the message belongs to no stream
    std::size_t bytes = 0;
    bool is_result = false;
  };

  // The gauge `unsent` counts bytes.
  PeerOutbox(PeerWire& wire, client_protocol::Encoder& encoder, Gauge& unsent)
      : wire_(wire), encoder_(encoder), gauge_(unsent) {}
  ~PeerOutbox();
  PeerOutbox(const PeerOutbox&) = delete;
  PeerOutbox& operator=(const PeerOutbox&) = delete;

  // Returns the length of the message in bytes. If it throws std::bad_alloc, nothing is enqueued.
  template <class Message>
  std::size_t enqueue(const Message& message, PeerStream* stream = nullptr,
                      bool is_result = false) {
    return append(encoder_.encode(message), stream, is_result);
  }

  // Sends the next message and returns its label. Nullopt if the queue is empty or the wire does
  // not accept the message.
  std::optional<Label> send_next();

  // Drops all queued messages of the stream.
  void drop(const PeerStream& stream) noexcept;

  // The peer's address: see PeerWire::address().
  std::string peer() const { return wire_.address(); }
  bool empty() const { return sending_.labels.size() == next_ && waiting_.labels.empty(); }
  std::size_t unsent() const { return unsent_; }  // bytes
  std::size_t unsent_without_stream() const { return unsent_without_stream_; }

 private:
  // Messages in memory that is reused.
  struct Batch {
    std::string bytes;
    std::vector<Label> labels;
  };
  static constexpr std::size_t kept_ = 16 * 1024;

  std::size_t append(Bytes message, PeerStream* stream, bool is_result);
  void start_next_batch();
  std::size_t drop(const PeerStream& stream, Batch& batch, std::size_t first, std::size_t at);

  PeerWire& wire_;
  client_protocol::Encoder& encoder_;
  Gauge& gauge_;
  Batch sending_;  // sent up to label next_ and byte at_
  Batch waiting_;  // the messages after sending_
  std::size_t next_ = 0;
  std::size_t at_ = 0;
  std::size_t unsent_ = 0;
  std::size_t unsent_without_stream_ = 0;  // bytes of messages without a stream
};

}  // namespace millrace
