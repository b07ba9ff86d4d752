// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "transport/sessions/zeromq/peer_stream.h"

namespace millrace {

// One client with many streams over one connection. Opens the streams, passes each message of the
// client to its stream, and the messages of the streams to the wire. Has no clock and no socket:
// the caller passes the time in. Open streams are lost when this object is destroyed.
//
// An error in one stream ends at most that stream. These end all streams of the peer:
// - the third invalid message within ten seconds;
// - a peer that does not read: messages wait, and its host acknowledges no byte for
//   `limits.write_stall`;
// - a message while over `limits.unsent_replies` bytes of messages without a stream are unsent;
// - no `Open` for `limits.idle`, if the peer has never opened a stream.
// Then nothing more is received from the peer, and it is cut `limits.close` later, which leaves it
// time to read the error. If it does not read, streams that outlive their connection do not fail:
// they lose it at the cut. A peer that has opened a stream before may stay without streams: its
// socket answers heartbeats, and it may open the next stream at any time.
//
// Confined to one thread.
class ClientPeer {
 public:
  static constexpr std::size_t max_streams = 1024;

  // `wire` and `context` outlive it.
  ClientPeer(PeerWire& wire, const PeerContext& context, Time now);
  ~ClientPeer();
  ClientPeer(const ClientPeer&) = delete;
  ClientPeer& operator=(const ClientPeer&) = delete;

  // A message of the peer. Its bytes must stay valid and unchanged during the call.
  void received(const client_protocol::ToService& message, Time now);
  // A part of the last message waits, so that other connections are served before: call proceed()
  // until it is false, before the next message.
  bool is_unfinished() const { return unfinished_.has_value(); }
  void proceed();
  // An invalid message of the peer. `what` is sent back.
  void malformed(MessageFault fault, std::string_view what, Time now);

  // Sends queued messages until the wire accepts no more. Call it after PeerWire::wake(), and when
  // a full wire accepts messages again.
  void flush(Time now);
  // Checks the time limits. Call it several times a second.
  void check(Time now);
  // The same in parts: a round begins with the peer's own time limits; each call then checks some
  // of its streams, up to about `most`. Returns the number of checks. The round is over when
  // is_checked().
  std::size_t check_some(Time now, std::size_t most);
  bool is_checked() const { return next_bucket_ == 0; }
  // The connection has ended. No call may follow.
  void lost(Time now);
  // A call has thrown: ends the peer with an internal error. Only lost() may follow.
  void fail() { ending_ = Closing::internal; }

  std::size_t streams() const { return streams_.size(); }
  // Why the peer is ended; nullopt while it is open.
  std::optional<Closing> ending() const { return ending_; }

 private:
  using Streams = std::unordered_map<std::uint64_t, std::unique_ptr<PeerStream>>;

  void open(const client_protocol::Open& open, Time now);
  void refuse(const client_protocol::Open& open, const RequestError& error);
  template <class Message>
  void dispatch(const Message& message, Time now);
  void remove_if_over(PeerStream& stream, Time now);
  void answer_unknown(std::uint64_t number);
  bool note_unknown(std::uint64_t number);
  bool has_too_many_faults(Time now);
  void check_own(Time now);
  void note_progress(Time now);
  void end_silent(Time now);
  void end(Closing why, ErrorCode code, std::string_view message, Time now);

  PeerWire& wire_;
  const PeerContext& context_;
  PeerOutbox outbox_;
  Streams streams_;
  // Stream numbers that are not open, and for which the peer was sent `unknown_stream` or the end
  // of the stream; the oldest first.
  std::vector<std::uint64_t> unknown_;
  std::array<std::optional<Time>, 2> faults_;  // times of the last invalid messages
  Time progress_;                              // when all was sent, or the last acknowledgement
  std::uint64_t acknowledged_ = 0;             // bytes at that time
  Time last_open_;                             // time of the last `Open`, or of the connection
  bool has_opened_ = false;                    // at least one stream
  std::size_t next_bucket_ = 0;                // the next bucket of streams_ to check
  std::optional<std::uint64_t> unfinished_;    // the stream of the message of which a part waits
  std::optional<Closing> ending_;
  Time ended_;
  bool cut_ = false;
};

}  // namespace millrace
