// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/time.h"
#include "transport/net.h"
#include "transport/stats.h"
#include "transport/zeromq_message.h"

namespace millrace {

// One connection that has sent something; no two ever have the same. What a peer calls itself
// (its routing id) means nothing.
enum class ZeromqPeer : std::uint64_t {};

// How long a router waits for a connection.
struct ZeromqTimes {
  std::chrono::milliseconds handshake{5'000};
  std::chrono::milliseconds greeting{10'000};  // from TCP accept to the first message
  std::chrono::milliseconds heartbeat{
      2'000};  // libzmq's own; their answers are what it listens for
  std::chrono::milliseconds silence{6'000};
};

// Where a router listens, and what it takes of a peer.
struct ZeromqBinding {
  std::string endpoint = {};           // "tcp://127.0.0.1:5555"; port 0: any free one
  std::size_t max_message = 64 << 10;  // bytes; a longer part ends the connection
  int high_water = 256;                // messages that wait in libzmq per peer, each way
  ZeromqTimes times = {};              // shorter ones are for tests
};

// Who gets what peers send. Called on the router's thread, in the order of each peer's messages;
// may call the router back, and must not destroy it.
class ZeromqSink {
 public:
  virtual ~ZeromqSink() = default;
  // A message of one part.
  virtual void received(ZeromqPeer peer, ZeromqMessage message) = 0;
  // One of more parts, which is dropped.
  virtual void malformed(ZeromqPeer peer) = 0;
  // After send() said `full`: it may have room again.
  virtual void writable(ZeromqPeer peer) = 0;
  // The last word of a peer that was heard of above: its connection is gone, and everything that it
  // sent was given out.
  virtual void lost(ZeromqPeer peer) = 0;
};

// A bound ROUTER socket on an Asio thread: messages of one part from many peers, and to them.
//
// Memory: per peer `high_water` messages each way. A peer that sends faster than it is heard is
// held up by TCP, alone; one that does not read fills its own queue, and send() says so. Nothing is
// dropped unseen. libzmq counts whole messages only, and keeps a message of many parts until it is
// whole: who has sent `max_message` and 256 KiB of one that is not is cut, 0.6 s later at most.
//
// Bad peers: a connection takes a part of the budget from its TCP accept on, and is cut at once
// where none is left. libzmq ends those that do not shake hands, speak ZMTP 1 or 2 or another
// mechanism than NULL, send a part that is too long, or do not answer its heartbeats. Those that
// say nothing are cut here, as is the second of two with the same routing id, which is never heard.
//
// Constructed anywhere; everything from start() on: confined to the executor's thread, and
// destroyed when that does not run any more. What a sink throws leaves the run of the io_context.
class ZeromqRouter {
 public:
  // Binds. `connections` and `stats` outlive it. Throws std::runtime_error that names the endpoint.
  ZeromqRouter(Executor executor, const ZeromqBinding& binding, Budget& connections,
               ZeromqStats& stats);
  // Brings out what was sent for at most 1 s.
  ~ZeromqRouter();

  // From now on peers are heard. The sink outlives the run of the io_context.
  void start(ZeromqSink& sink);

  enum class Sent : std::uint8_t {
    taken,
    full,  // nothing was taken, the peer has to read first; writable() follows
    gone,  // nothing was taken, nobody is there; lost() follows unless it came
  };
  // Copies the message when it is taken. Throws std::bad_alloc: the peer got an empty one, cut it.
  [[nodiscard]] Sent send(ZeromqPeer peer, Bytes message);
  // Moves from the message when it is taken.
  [[nodiscard]] Sent send(ZeromqPeer peer, ZeromqMessage& message);

  // Ends the connection of a peer, with all that waits for it in libzmq. It is not heard any more;
  // lost() follows.
  void cut(ZeromqPeer peer);

  std::uint16_t port() const;  // where it is bound

 private:
  class Bound;
  std::unique_ptr<Bound> bound_;
};

}  // namespace millrace
