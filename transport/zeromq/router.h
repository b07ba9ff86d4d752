// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/time.h"
#include "transport/net/net.h"
#include "transport/net/stats.h"
#include "transport/zeromq/message.h"

namespace millrace {

// One connection that has sent a message; no two ever have the same number.
enum class ZeromqPeer : std::uint64_t {};

// How long a router waits for a connection.
struct ZeromqTimes {
  std::chrono::milliseconds handshake{5'000};
  std::chrono::milliseconds greeting{10'000};  // from TCP accept to the first message
  std::chrono::milliseconds heartbeat{2'000};  // between two PINGs
  std::chrono::milliseconds silence{30'000};   // of ours, after which a peer may give us up
  // From a PING, without any byte. A peer that does not read does not answer either; its owner,
  // which can say why, ends it before that.
  std::chrono::milliseconds unanswered{15'000};
  std::chrono::milliseconds message{5'000};  // from its first byte to its last
};

// Where a router listens, and what it takes of a peer.
struct ZeromqBinding {
  std::string endpoint = {};           // "tcp://127.0.0.1:5555"; port 0: any free one
  std::size_t max_message = 64 << 10;  // bytes; a longer one ends the connection
  std::size_t max_first = 64 << 10;    // the same for the first message
  // The most connections. Null: any number that finds room. Outlives the router.
  const std::atomic<std::uint64_t>* max_connections = nullptr;
  // While it is true, new connections are refused. Null: never. Outlives the router.
  const std::atomic<bool>* memory_short = nullptr;
  ZeromqTimes times = {};  // shorter ones are for tests
};

// Receives what peers send. Called on the router's thread, in the order of each peer's messages;
// may call the router back, and must not destroy it. If it throws, the peer is lost.
class ZeromqSink {
 public:
  virtual ~ZeromqSink() = default;
  // A message of one part.
  virtual void received(ZeromqPeer peer, ZeromqMessage message) = 0;
  // A message of several parts, which was dropped.
  virtual void malformed(ZeromqPeer peer) = 0;
  // After send() returned `full`: there may be room again.
  virtual void writable(ZeromqPeer peer) = 0;
  // A connection from this address ended before its first message, for this reason.
  virtual void connection_refused(const Tcp::endpoint&, Refusal) {}
  // The connection of a peer that was named above is gone. All that it sent was received.
  virtual void lost(ZeromqPeer peer) = 0;
};

// The service's end of ZeroMQ connections: speaks ZMTP 3 (RFC 23) over TCP as a ROUTER with the
// mechanism NULL. Receives messages of one part from many peers, and sends to them.
//
// Memory per peer: the message that it is sending, and what it was sent and has not read, of which
// send() takes no more when that is 64 KiB. Before the handshake is complete a peer may have sent
// 4 KiB (zmtp_reader.h). A peer that sends faster than it is read is held up by TCP, alone.
//
// Ends and counts connections that: are more than may be, find no room in the budget, or come while
// memory is short; do not speak ZMTP 3 and NULL; have the routing id of an open connection, one
// longer than 255 bytes, or one that begins with 0; are beyond a limit of the binding; or are late.
//
// Constructed anywhere; everything from start() on: confined to the executor's thread, and
// destroyed when that does not run any more. What a sink throws leaves the run of the io_context.
class ZeromqRouter {
 public:
  // Binds. `connections` and `stats` outlive it. Throws std::runtime_error that names the endpoint.
  ZeromqRouter(Executor executor, const ZeromqBinding& binding, Budget& connections,
               ZeromqStats& stats);
  // Writes what was sent, for up to 1 s.
  ~ZeromqRouter();

  // From now on connections are accepted. The sink outlives the run of the io_context.
  void start(ZeromqSink& sink);

  enum class Sent : std::uint8_t {
    taken,
    full,  // nothing was taken, the peer has to read first; writable() follows
    gone,  // nothing was taken, there is no such peer; lost() follows unless it came
  };
  // Copies the message when it is taken. Throws std::bad_alloc: nothing was taken.
  [[nodiscard]] Sent send(ZeromqPeer peer, Bytes message);
  // Moves from the message when it is taken. Throws std::bad_alloc: the message is lost.
  [[nodiscard]] Sent send(ZeromqPeer peer, ZeromqMessage& message);

  // The peer's address; empty if there is no such peer.
  std::string address(ZeromqPeer peer) const;
  // Bytes that the peer's host has acknowledged since it connected. 0 if there is no such peer.
  std::uint64_t acknowledged(ZeromqPeer peer) const;
  // All that the peer was sent is written to its socket, or there is no such peer.
  bool is_written(ZeromqPeer peer) const;
  // The peer's host has acknowledged every message, or the peer gets no more: it is cut, or gone.
  bool has_all(ZeromqPeer peer) const;

  // Ends the connection of a peer, with all that waits to be sent. Nothing more is received from
  // it; lost() follows.
  void cut(ZeromqPeer peer) noexcept;

  std::uint16_t port() const;  // where it is bound

 private:
  class Bound;
  std::unique_ptr<Bound> bound_;
};

}  // namespace millrace
