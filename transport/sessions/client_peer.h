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

#include "transport/sessions/peer_stream.h"

namespace millrace {

// One client that has many streams over one connection: opens them, brings each message to its
// stream, and what its streams are told to the wire. It has no clock and no socket: every input
// says when it came. Streams that it has when it is destroyed are lost.
//
// What a peer does wrong with a stream costs it that stream at most. The third message in ten
// seconds that is none costs it all of them, as does reading nothing: messages wait, and its host
// acknowledges no byte for `limits.write_stall`. It is not heard any more then, and cut
// `limits.close` later, when it had time to read why. So is one that has never opened a stream and
// has not asked for one for `limits.idle`. One that has may stay without any: its socket answers
// heartbeats, so somebody is there, and may open the next one at any time.
//
// Confined to one thread.
class ClientPeer {
 public:
  static constexpr std::size_t max_streams = 1024;

  // Both outlive it.
  ClientPeer(PeerWire& wire, const PeerPlace& place, Time now);
  ~ClientPeer();
  ClientPeer(const ClientPeer&) = delete;
  ClientPeer& operator=(const ClientPeer&) = delete;

  // What it says. Within the call `message` does not change.
  void received(const client_protocol::ToService& message, Time now);
  // It sent what is no message.
  void malformed(MessageFault how, std::string_view what, Time now);

  // Gives the wire what it takes of what waits. Wanted after PeerWire::wake, and when the wire was
  // full and is no more.
  void flush(Time now);
  // Time has passed. Wanted some times a second.
  void check(Time now);
  // The same in turns: the peer's own time limits when a round begins, then some of its streams at
  // each call, up to about `most`. Returns how much it looked at; the round is over when
  // is_checked().
  std::size_t check_some(Time now, std::size_t most);
  bool is_checked() const { return next_bucket_ == 0; }
  // Its connection is gone. The last call.
  void lost(Time now);
  // A call failed, by our fault: nothing of it is heard or said any more but lost().
  void fail() { ending_ = Closing::internal; }

  std::size_t streams() const { return streams_.size(); }
  // Why it is to be cut, or was.
  std::optional<Closing> ending() const { return ending_; }

 private:
  using Streams = std::unordered_map<std::uint64_t, std::unique_ptr<PeerStream>>;

  void open(const client_protocol::Open& open, Time now);
  void refuse(const client_protocol::Open& open, const RequestError& error);
  template <class Message>
  void bring(const Message& message, Time now);
  void answer_unknown(std::uint64_t number);
  bool note_unknown(std::uint64_t number);
  bool offends_too_often(Time now);
  void check_own(Time now);
  void note_progress(Time now);
  void give_up_silent(Time now);
  void end(Closing why, ErrorCode code, std::string_view message, Time now);

  PeerWire& wire_;
  const PeerPlace& place_;
  PeerOutbox outbox_;
  Streams streams_;
  // Numbers of no stream that were told so, or that it is over; the oldest first.
  std::vector<std::uint64_t> unknown_;
  std::array<std::optional<Time>, 2> offences_;  // the last ones
  Time progress_;                                // when nothing waited, or it last took something
  std::uint64_t acknowledged_ = 0;               // bytes, by then
  Time asked_;                                   // for a stream, or connected
  bool opened_ = false;                          // a stream, ever
  std::size_t next_bucket_ = 0;                  // of streams_, to be checked next
  std::optional<Closing> ending_;
  Time ended_;
  bool cut_ = false;
};

}  // namespace millrace
