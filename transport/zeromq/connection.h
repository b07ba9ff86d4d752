// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/budget.h"
#include "base/time.h"
#include "transport/net/net.h"
#include "transport/net/peer_address.h"
#include "transport/zeromq/router.h"
#include "transport/zeromq/zmtp_output.h"
#include "transport/zeromq/zmtp_reader.h"

namespace millrace {

// A connection of a router: its socket, what was read and is to be written, and its time limits.
// Confined to one thread.
struct ZeromqConnection {
  ZeromqConnection(Socket accepted_socket, Share its_room, std::size_t max_first, Time now)
      : room(std::move(its_room)),
        socket(std::move(accepted_socket)),
        peer(peer_of(socket)),
        timer(socket.get_executor()),
        reader(max_first),
        accepted(now),
        pinged(now) {}

  Share room;
  Socket socket;
  const Tcp::endpoint peer;  // kept for when the connection is lost
  Timer timer;
  ZmtpReader reader;
  ZmtpOutput output;

  const Time accepted;
  Time pinged;                        // when the last PING was due
  std::optional<Time> unanswered;     // since when a PING waits for any byte of the peer
  std::optional<Time> message_begun;  // of the message that is being read

  // The stages of a connection: none of them, ready, told. It may be cut in each stage. From then
  // on nothing is received or sent, and the sink is called only for lost().
  bool ready = false;  // the handshake is complete
  bool told = false;   // the sink was called for it: lost() follows when it ends
  bool cut =
      false;  // by the owner of the router, or after a failed write; removed at the next event

  // If the output is not empty, at least one of the first two is true. Only if there was no memory
  // for the event, neither is: then the timer writes.
  bool flush_due = false;  // it is in the queue of flushes
  bool waiting = false;    // for the socket to be writable
  bool blocked = false;    // send() returned `full`: writable() follows

  // A PING behind what the peer does not read would say nothing about the peer.
  void ping_when_due(const ZeromqTimes& times, std::string_view ping, Time now) {
    if (!ready || now < pinged + times.heartbeat) return;
    pinged = now;
    if (!output.empty()) return;
    output.add_command(ping);
    if (!unanswered) unanswered = now;
  }
  // A peer that does not read gets no answers to its PINGs.
  void answer_ping() {
    if (!output.is_full()) output.add_command(std::string("\4PONG").append(reader.context()));
  }
  // All bytes that were read are taken. Requires: message_begun is of an unfinished message.
  void note_progress(Time now) {
    if (!reader.is_within())
      message_begun.reset();
    else if (!message_begun)
      message_begun = now;
  }

  // Every time limit that applies now, the next PING included, is at this time or later.
  Time next_due(const ZeromqTimes& times) const {
    Time due = Time::max();
    const auto limit = [&](Time at) { due = at < due ? at : due; };
    if (!ready) limit(accepted + times.handshake);
    if (!told) limit(accepted + times.greeting);
    if (ready) limit(pinged + times.heartbeat);
    if (unanswered) limit(*unanswered + times.unanswered);
    if (message_begun) limit(*message_begun + times.message);
    return due;
  }
  bool is_late(const ZeromqTimes& times, Time now) const {
    return (!ready && now >= accepted + times.handshake) ||
           (!told && now >= accepted + times.greeting) ||
           (unanswered && now >= *unanswered + times.unanswered) ||
           (message_begun && now >= *message_begun + times.message);
  }
};

}  // namespace millrace
