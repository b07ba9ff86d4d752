// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "streams/client_output.h"
#include "streams/stream_input.h"
#include "transport/access/client_access.h"
#include "transport/net/limits.h"
#include "transport/net/retry_times.h"
#include "transport/net/stats.h"
#include "transport/sessions/frames_in_pieces.h"
#include "transport/sessions/stream_admission.h"
#include "transport/sessions/zeromq/peer_outbox.h"

namespace millrace {

// The objects that all peers of a thread share. They outlive the peers.
struct PeerContext {
  StreamAdmission& admission;
  client_protocol::Encoder& encoder;
  const ConnectionLimits& limits;
  TransportStats& stats;
  RetryTimes& retry_times;
  const ClientAccess& access;
};

// One of the streams of a ZeroMQ client. Checks the positions of the frames, enforces the credit,
// and sends the stream's output to the client. Has no clock.
//
// Positions and credit count frames of the client; each message of an Opus client is a frame, which
// is a packet. Messages without bytes are not frames.
//
// Positions: frames that were received before are dropped and counted; missing frames are a gap.
//
// Credit: each received frame uses one, even if it is rejected. When at most half of the free
// capacity of the stream is granted, the peer is granted all of it. The capacity therefore bounds
// the frames that a stream holds. Messages beyond the credit are rejected. No credit is granted
// from `limits.unsent` unsent bytes on, until half of that is unsent.
//
// Results are never dropped. If more than `limits.unsent` bytes of other messages are unsent when
// the peer sends a message, the stream ends with `slow_reader`. A stream that resumes keeps these
// messages itself, and bounds them.
//
// The messages of a stream that resumes have numbers. It is not over() until the peer has
// acknowledged its last message, or has had `limits.close` to do so: then it waits like a stream
// whose connection is lost.
//
// Outbox and context outlive it. Confined to one thread.
class PeerStream final : public ClientOutput {
 public:
  PeerStream(std::uint64_t number, PeerOutbox& outbox, const PeerContext& context)
      : number_(number), outbox_(outbox), context_(context) {}
  PeerStream(const PeerStream&) = delete;
  PeerStream& operator=(const PeerStream&) = delete;

  // Takes the opened stream and sends the first credit. Requires: ready() was called.
  void begin(StreamHandle stream, Time now);

  // A message of the peer to this stream.
  void received(const client_protocol::Frames& frames, Time now);
  // A part of the last message waits: call proceed() until it is false, before other messages.
  bool is_unfinished() const { return !pieces_.empty(); }
  void proceed();
  void received(const client_protocol::Flush& flush, Time now);
  void received(const client_protocol::Reset& reset, Time now);
  void received(const client_protocol::Gap& gap, Time now);
  void received(const client_protocol::Post& post, Time now);
  void received(const client_protocol::SetOptions& set, Time now);
  void received(const client_protocol::End& end, Time now);
  void received(const client_protocol::Received& received, Time now);

  // Checks the time limits. Call it several times a second.
  void check(Time now);
  // Ends the stream with an error.
  void fail(ErrorCode code, std::string_view message, Time now);
  // The wire has accepted a message of this stream.
  void sent(const PeerOutbox::Label& label, Time now);
  // The connection has ended, or over(). No call may follow.
  void lost(Time now);

  std::uint64_t number() const { return number_; }
  // error() or closed() was called. Further messages of the peer are ignored.
  bool closing() const { return closing_; }
  // The stream is closing() and all its messages were sent.
  bool sent_all() const { return closing_ && unsent_ == 0; }
  // The same, and the peer need not acknowledge the last message any more.
  bool over() const { return sent_all() && (!last_ || timed_out_); }
  // The peer shows that it has the last message.
  void acknowledge_all() { last_.reset(); }
  // The peer may continue the stream over another connection.
  bool outlives_connection() const { return stream_ && stream_->outlives_connection(); }

  std::string peer() const override { return outbox_.peer(); }
  void ready(const StreamReady& ready) override;
  void result(const ResultHead& head, const Answer& answer) override;
  void message(const MessageHead& head, const Answer& message) override;
  void flushed(std::uint64_t mark, std::uint64_t seq) override;
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override;
  void warning(ErrorCode, std::string_view) override {}  // only logged
  void goaway() override;
  void error(ErrorCode code, std::string_view message) override;
  void closed(std::uint64_t frames, std::uint64_t chunks, bool drained) override;
  void number(const MessageNumber& number) override { next_ = number; }
  void acknowledged(const ResumePoint& point) override;
  void drop_queued() override;
  std::size_t reclaimable() const override { return closing_ ? 0 : unsent_; }
  bool has_room() const override { return unsent_ < context_.limits.unsent / 2; }
  void resume() override {}  // ZeroMQ clients are always read
  void credit_available() override { top_up(); }

 private:
  // Why a message is rejected.
  struct Fault {
    ErrorCode code;
    std::string message;
    MessageFault counted;  // for the metrics
  };

  void await_acknowledgement(Time now);
  std::optional<std::uint64_t> take_number();
  void close(std::optional<std::uint64_t> last);
  bool accepts_input(Time now);
  bool accepts_json(std::string_view text, bool (*is_valid)(std::string_view, std::size_t),
                    std::string_view what, Time now);
  std::uint64_t frames_in(Bytes message) const;
  std::optional<Fault> fault_of(const client_protocol::Frames& frames, bool within_credit) const;
  void reject(const Fault& fault, std::uint64_t frames, Time now);
  void accept(MessageType type, std::size_t bytes);
  void top_up();
  template <class Message>
  void enqueue(const Message& message, bool is_result = false);

  const std::uint64_t number_;
  PeerOutbox& outbox_;
  const PeerContext& context_;
  StreamHandle stream_;
  std::optional<std::size_t> frame_bytes_;  // size of one frame; nullopt: each message is a frame
  std::uint64_t position_ = 0;              // position of the next frame, in client frames
  std::int64_t granted_ = 0;
  std::size_t unsent_ = 0;        // bytes
  std::size_t unsent_other_ = 0;  // the part of the rest that is not results
  Time last_received_;
  FramesInPieces pieces_;
  std::optional<MessageFault> fault_;  // fault of the message that is being rejected
  std::uint64_t rejections_ = 0;
  std::optional<MessageNumber> next_;  // number of the next message
  std::optional<std::uint64_t> last_;  // number of the last message, until it is acknowledged
  std::optional<Time> sent_all_since_;
  bool timed_out_ = false;  // the peer has not acknowledged it
  bool ended_ = false;      // the peer has sent `End`
  bool closing_ = false;
};

}  // namespace millrace
