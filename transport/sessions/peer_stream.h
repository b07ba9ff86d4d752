// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "streams/client_output.h"
#include "streams/stream_input.h"
#include "transport/net/limits.h"
#include "transport/net/retry_times.h"
#include "transport/net/stats.h"
#include "transport/sessions/peer_outbox.h"
#include "transport/sessions/stream_admission.h"

namespace millrace {

// What all peers of a thread work with; it outlives them.
struct PeerPlace {
  StreamAdmission& admission;
  client_protocol::Encoder& encoder;
  const ConnectionLimits& limits;
  DoorStats& stats;
  RetryTimes& retry_times;
};

// One stream of a peer that has many: finds each frame's place by its position, keeps the peer to
// its credit, and tells it what the stream's owner says. It has no clock.
//
// Positions: frames that were there already are dropped and counted, those that are missing are a
// gap. Credit: a frame that is sent costs one, whatever becomes of it; when the peer has used half
// of what the stream has room for, it is told of all of it. So what a stream holds is bounded by
// its room, and messages beyond the credit are refused. No credit is given while more than
// `limits.unsent` waits to be sent. Results are never dropped; a stream is ended (`slow_reader`)
// when `limits.unsent` of other messages waits and the peer says more.
//
// Outbox and place outlive it. Confined to one thread.
class PeerStream final : public ClientOutput {
 public:
  PeerStream(std::uint64_t number, PeerOutbox& outbox, const PeerPlace& place)
      : number_(number), outbox_(outbox), place_(place) {}
  PeerStream(const PeerStream&) = delete;
  PeerStream& operator=(const PeerStream&) = delete;

  // Once ready() was called: the first credit.
  void begin(StreamHandle stream, Time now);

  // What the peer says.
  void take(const client_protocol::Frames& frames, Time now);
  void take(const client_protocol::Flush& flush, Time now);
  void take(const client_protocol::Reset& reset, Time now);
  void take(const client_protocol::Gap& gap, Time now);
  void take(const client_protocol::End& end, Time now);

  // Time has passed.
  void check(Time now);
  // It cannot go on.
  void fail(ErrorCode code, std::string_view message, Time now);
  // The wire has taken one of its messages.
  void sent(const PeerOutbox::Label& label, Time now);
  // The peer is gone, or has heard the last word: the last call.
  void lost(Time now);

  std::uint64_t number() const { return number_; }
  // error() or closed() was called: what the peer says does not count.
  bool closing() const { return closing_; }
  // And the wire has taken it.
  bool over() const { return closing_ && unsent_ == 0; }
  std::int64_t granted() const { return granted_; }  // frames that it may send; below 0: too many

  std::string peer() const override { return outbox_.peer(); }
  void ready(std::string_view stream, std::string_view pipeline, std::uint64_t frames,
             std::size_t frame_bytes) override;
  void result(const ResultHead& head, const Answer& answer) override;
  void flushed(std::uint64_t mark) override;
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override;
  void warning(ErrorCode, std::string_view) override {}  // the log has it
  void goaway() override;
  void error(ErrorCode code, std::string_view message) override;
  void closed(std::uint64_t frames, std::uint64_t chunks, bool drained) override;
  void drop_untaken() override;
  std::size_t reclaimable() const override { return closing_ ? 0 : unsent_; }
  void resume() override {}  // nobody stopped reading
  void has_room() override { top_up(); }

 private:
  // Why a message is refused, and how that is counted.
  struct Fault {
    ErrorCode code;
    std::string_view message;
    MessageFault counted;
  };

  bool hears(Time now);
  std::optional<Fault> fault_of(const client_protocol::Frames& frames, bool within_credit) const;
  void reject(const Fault& fault, std::uint64_t frames, Time now);
  void accept(MessageType type, std::size_t bytes);
  void top_up();
  template <class Message>
  void put(const Message& message, bool is_result = false);

  const std::uint64_t number_;
  PeerOutbox& outbox_;
  const PeerPlace& place_;
  StreamHandle stream_;
  std::size_t frame_bytes_ = 1;
  std::uint64_t position_ = 0;  // of the next frame, in frames of the client
  std::int64_t granted_ = 0;
  std::size_t unsent_ = 0;
  std::size_t chatter_ = 0;  // what of it is no result
  Time heard_;
  std::optional<MessageFault> fault_;  // of the message that is being refused
  std::uint64_t rejections_ = 0;
  bool ended_ = false;  // by the peer
  bool closing_ = false;
};

}  // namespace millrace
