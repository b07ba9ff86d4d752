// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/time.h"
#include "transport/net/net.h"
#include "transport/net/peer_address.h"
#include "transport/net/turns.h"
#include "transport/zeromq/router.h"
#include "transport/zeromq/zmtp_output.h"
#include "transport/zeromq/zmtp_reader.h"

namespace millrace {

// A connection of a router: its socket, its input and output, and its time limits. Confined to one
// thread.
struct ZeromqConnection {
  static constexpr std::string_view closed_early = "it was closed before its first message";

  ZeromqConnection(Socket accepted_socket, Share its_share, std::size_t max_first, Time now)
      : budget_share(std::move(its_share)),
        socket(std::move(accepted_socket)),
        peer(peer_of(socket)),
        timer(socket.get_executor()),
        turn(socket.get_executor()),
        reader(max_first),
        accepted(now),
        pinged(now) {}

  Share budget_share;
  Socket socket;
  const Tcp::endpoint peer;  // also known after the connection is lost
  Timer timer;
  Turns::Turn turn;
  ZmtpReader reader;
  ZmtpOutput output;

  const Time accepted;
  Time pinged;                     // when the last PING was due, whether the peer knows it or not
  std::optional<Time> unanswered;  // since when a PING waits for any byte of the peer
  std::optional<Time> message_begun;  // when the message that is being read began
  bool heard = false;                 // at least one byte was received
  bool unfinished = false;            // the sink must proceed with the last message
  bool listens = false;               // waits until the socket is readable
  Bytes unread;                       // received bytes that wait for the next turn, in `kept`
  std::vector<std::byte> kept;        // empty unless `unread` has bytes
  // Why it ends, if it sends no first message. A literal.
  std::string_view why = closed_early;

  // The stages of a connection are: neither of these two, ready, reported.
  bool ready = false;     // the handshake is complete
  bool reported = false;  // the sink has received an event of it: lost() follows at its end
  // In each stage the connection can be cut: by the router's owner, or after a failed write. Then
  // nothing more is received or sent, and the sink is called only for lost(). The connection is
  // removed at its next event.
  bool cut = false;

  // If the output is not empty, flush_due or waiting is true. Neither is true if the event could
  // not be allocated: then the timer writes the output.
  bool flush_due = false;  // the connection is in the queue of flushes
  bool waiting = false;    // until the socket is writable
  bool blocked = false;    // send() returned `full`: writable() follows

  // Its last turn was over before all received bytes were processed.
  bool has_work() const { return unfinished || !unread.empty(); }
  // The bytes to process: those that wait, or new ones, in `buffer`; empty if there are none now.
  // nullopt at the end of the connection.
  std::optional<Bytes> read(std::span<std::byte> buffer) {
    if (has_work()) return unread;
    const ssize_t got = ::recv(socket.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Bytes();
    if (got <= 0) return std::nullopt;
    heard = true;
    unanswered.reset();
    return buffer.first(static_cast<std::size_t>(got));
  }
  ZmtpReader::Found next(Bytes& bytes) {
    const auto found = reader.next(bytes);
    // is_within(): a PING between two parts of a message does not end that message.
    if (found != ZmtpReader::Found::nothing && !reader.is_within()) message_begun.reset();
    return found;
  }
  // Keeps the bytes of read() that the turn did not reach.
  void keep(Bytes bytes) {
    const bool kept_before = !unread.empty();
    if (bytes.empty()) {
      if (kept_before) std::vector<std::byte>().swap(kept);
    } else if (!kept_before) {
      kept.assign(bytes.begin(), bytes.end());
      bytes = kept;
    }
    unread = bytes;
  }
  // Another program checked that the port is open: its connection has ended without a byte.
  bool is_check() const { return !heard && why == closed_early; }
  // Adds a PING if it is due, but not after unread output: such a PING would not test the peer.
  void ping_when_due(const ZeromqTimes& times, std::string_view ping, Time now) {
    if (!ready || now < pinged + times.heartbeat) return;
    pinged = now;
    if (!reader.knows_ping() || !output.empty()) return;
    output.add_command(ping);
    if (!unanswered) unanswered = now;
  }
  // The PINGs of a peer that does not read are not answered.
  void answer_ping() {
    if (!output.is_full()) output.add_command(std::string("\4PONG").append(reader.context()));
  }
  // Call it at the end of each turn. Requires: message_begun is not that of a finished message.
  void note_progress(Time now) {
    if (!reader.is_within())
      message_begun.reset();
    else if (!message_begun)
      message_begun = now;
  }

  // The earliest of the time limits that apply now, including the next PING. This instant exists
  // also for a peer that does not know PING: its other limits are checked then. A peer does not
  // have to send more while earlier bytes wait for their turn.
  Time next_due(const ZeromqTimes& times) const {
    Time due = Time::max();
    const auto limit = [&](Time at) { due = at < due ? at : due; };
    if (!ready) limit(accepted + times.handshake);
    if (!reported) limit(accepted + times.greeting);
    if (ready) limit(pinged + times.heartbeat);
    if (has_work()) return due;
    if (unanswered) limit(*unanswered + times.unanswered);
    if (message_begun) limit(*message_begun + times.message);
    return due;
  }
  // Which limit is exceeded; nullopt if none is.
  std::optional<std::string_view> late(const ZeromqTimes& times, Time now) const {
    if (!ready && now >= accepted + times.handshake) return "the handshake took too long";
    if (!reported && now >= accepted + times.greeting)
      return "no valid first message was received in time";
    if (has_work()) return std::nullopt;
    if (unanswered && now >= *unanswered + times.unanswered) return "a PING was not answered";
    if (message_begun && now >= *message_begun + times.message) return "a message took too long";
    return std::nullopt;
  }
};

}  // namespace millrace
