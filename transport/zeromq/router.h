// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/time.h"
#include "transport/net/net.h"
#include "transport/net/stats.h"
#include "transport/zeromq/message.h"

namespace millrace {

// The id of a connection that has sent a message. Ids are never reused.
enum class ZeromqPeer : std::uint64_t {};

// The time limits of a connection.
struct ZeromqTimes {
  std::chrono::milliseconds handshake{5'000};  // from TCP accept to the complete handshake
  std::chrono::milliseconds greeting{10'000};  // from TCP accept to the first message
  std::chrono::milliseconds heartbeat{2'000};  // between two PINGs
  std::chrono::milliseconds silence{30'000};   // TTL of our PINGs: see zmtp_ping()
  // From a PING to any byte of the peer. Peers that do not read do not answer either; the router's
  // owner ends them before this limit, because it can report the reason.
  std::chrono::milliseconds unanswered{15'000};
  std::chrono::milliseconds message{5'000};  // from the first to the last byte of a message
};

// The address and the limits of a router.
struct ZeromqBinding {
  std::string endpoint = {};           // "tcp://127.0.0.1:5555"; port 0: any free port
  std::size_t max_message = 64 << 10;  // bytes; a longer message ends the connection
  std::size_t max_first = 64 << 10;    // the same for the first message
  // The most connections. Null: only the budget of the router limits them. Outlives the router.
  const std::atomic<std::uint64_t>* max_connections = nullptr;
  // While it is true, new connections are refused. Null: they are always accepted. Outlives the
  // router.
  const std::atomic<bool>* memory_short = nullptr;
  ZeromqTimes times = {};  // tests use shorter ones
};

// Receives the events of a router. Called on the router's thread, in the order of each peer's
// messages. May call the router, but must not destroy it. If a function throws, the peer is lost.
class ZeromqSink {
 public:
  virtual ~ZeromqSink() = default;
  // A message of one part. `arrived`: when its last byte was read or the messages before it were
  // processed, whichever is later. Returns true if a part of the work is left: proceed() follows,
  // until it returns false, before anything else of this peer is received.
  virtual bool received(ZeromqPeer peer, ZeromqMessage message, Time arrived) = 0;
  virtual bool proceed(ZeromqPeer) { return false; }
  // A message of several parts, which was dropped.
  virtual void malformed(ZeromqPeer peer) = 0;
  // After send() returned `full`: it may accept a message again.
  virtual void writable(ZeromqPeer peer) = 0;
  // A connection from this address was refused, or ended before its first message. One that its
  // peer ends without a byte, as health checks do, is not reported.
  virtual void connection_refused(const Tcp::endpoint&, Refusal, std::string_view /*why*/) {}
  // The connection of a peer that was passed to received() or malformed() has ended. Its complete
  // messages were received before, unless it was cut.
  virtual void lost(ZeromqPeer peer) = 0;
};

// The service's end of ZeroMQ connections: a ROUTER with the mechanism NULL that uses ZMTP 3 (RFC
// 23) over TCP. Receives messages of one part from many peers, and sends messages to them.
//
// Memory per peer: the incomplete message from the peer, up to 16 KiB of messages that wait for its
// next turn (transport/net/turns.h), and the unwritten messages to it; send() accepts no more while
// these are 64 KiB. Before the handshake is complete, a peer may have sent 4 KiB (zmtp_reader.h).
// If a peer sends faster than it is read, TCP stops that peer only.
//
// Peers that announce ZMTP 3.0 get no PING, which ZMTP 3.1 has added, and need not send anything.
// READY is sent when that of the peer was accepted: a libzmq peer that is refused before it keeps
// its queued messages, and sends them over its next connection.
//
// Ends and counts these connections:
// - those beyond `max_connections` or the budget, and those that arrive while memory is short;
// - peers that do not use ZMTP 3 with NULL;
// - peers whose routing id is longer than 255 bytes or begins with 0 (several may have the same);
// - peers that exceed a limit of the binding or a time limit.
//
// Constructed on any thread. From start() on, confined to the executor's thread; destroyed after
// that has stopped running. Exceptions of a sink leave io_context::run().
class ZeromqRouter {
 public:
  // Bytes read from one connection at once: some hundred of the shortest messages.
  static constexpr std::size_t read_at_once = std::size_t{16} << 10;

  // Binds. Each connection takes 1 from `connections`. `connections` and `stats` outlive the
  // router. Throws std::runtime_error that names the endpoint.
  ZeromqRouter(Executor executor, const ZeromqBinding& binding, Budget& connections,
               ZeromqStats& stats);
  // Writes the unwritten messages, for up to 1 s.
  ~ZeromqRouter();

  // Starts to accept connections. The sink outlives the run of the io_context.
  void start(ZeromqSink& sink);

  enum class Sent : std::uint8_t {
    accepted,
    full,     // not accepted, because the peer must read first; writable() follows
    no_peer,  // not accepted: no such peer; lost() follows if it was not called yet
  };
  // Copies the message if it is accepted. If it throws std::bad_alloc, the message is not accepted.
  [[nodiscard]] Sent send(ZeromqPeer peer, Bytes message);
  // Moves from the message if it is accepted. If it throws std::bad_alloc, the message is lost.
  [[nodiscard]] Sent send(ZeromqPeer peer, ZeromqMessage& message);

  // The peer's address; empty if there is no such peer.
  std::string address(ZeromqPeer peer) const;
  // Bytes that the peer's host has acknowledged since it connected; 0 if there is no such peer.
  std::uint64_t acknowledged(ZeromqPeer peer) const;
  // True if all messages to the peer are written to its socket, or there is no such peer.
  bool is_written(ZeromqPeer peer) const;
  // True if the peer's host has acknowledged all messages, or the peer is cut or gone.
  bool has_all(ZeromqPeer peer) const;

  // Ends the connection of a peer and drops its unwritten messages. Nothing more is received from
  // it; lost() follows.
  void cut(ZeromqPeer peer) noexcept;

  std::uint16_t port() const;  // the port that it listens on

 private:
  class Bound;
  std::unique_ptr<Bound> bound_;
};

}  // namespace millrace
