// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "client/internal/resume/resuming_stream.h"
#include "client/internal/stream_pipe.h"
#include "schemas/client_codec.h"
#include "schemas/stream_request.h"

namespace millrace {

// The messages that one stream sends over ZeroMQ: Open, then the input queued in its pipe, and
// acknowledgements. Frames are sent whole, with their position, and only as far as the stream has
// credit. A packet is a message and counts as one frame. While the pipe is held up, no input is
// sent: without further frames, the service has nothing further to answer.
//
// The service does not keep half a frame: it is kept here until its rest is queued. Before a gap
// and the end it is sent as it is, for the service to reject, as over WebSocket.
//
// Does no I/O. Confined to the client's thread.
class OutgoingStream {
 public:
  // `pipe`, `state` and `token`, which may be empty, outlive it. Requires: request.resumption is
  // nullopt.
  OutgoingStream(StreamPipe& pipe, ResumingStream& state, StreamRequest request,
                 const std::string& token);

  // The next message, valid until `encoder` is used again; empty if none can be sent now. Returns
  // the same message until sent() is called.
  Bytes next(client_protocol::Encoder& encoder, Time now);
  // The message from next() was sent.
  void sent(Time now);

  // The service has opened or resumed the stream. Requires: is_opening().
  void open(const client_protocol::Ready& ready);
  // Adds credit for `frames` frames.
  void grant(std::uint64_t frames) { credit_ += frames; }
  // Called once per keepalive interval. True if the stream is open and nothing was sent since the
  // last call: next() then returns at least a keepalive.
  bool check_idle();
  // Called every half a second. True if an acknowledgement is due and no other message was sent
  // with it since the last call: next() then returns it.
  bool check_ack(Time now);

  // There is no connection: nothing is sent until request().
  void wait() { stage_ = Stage::waiting; }
  // The next message is Open, over a new connection or after a refusal. It resumes the stream if
  // this has been open.
  void request();
  // The service knows no `resume`: the next message is Open without it.
  void request_without_resume();

  // Drops the queued input; the next message is End, or none if the stream was not requested yet.
  // Requires: the pipe has ended.
  void cut_short();
  // The service has ended the stream. If it resumes streams, the next message acknowledges the
  // messages before number `n`; 0: none.
  void finish(std::uint64_t n);
  // Nothing more is sent.
  void drop() { stage_ = Stage::over; }

  // Some is not sent, besides that in the pipe.
  bool has_input() const { return cut_short_ || !state_.outgoing().all_sent(); }
  bool is_waiting() const { return stage_ == Stage::waiting; }
  // Open was sent, and is not answered.
  bool is_opening() const { return stage_ == Stage::opening; }
  // Open is to be sent, or is not answered.
  bool awaits_answer() const { return stage_ == Stage::unopened || is_opening(); }
  bool is_over() const { return stage_ == Stage::over; }
  // The current Open, or the last one, resumes the stream.
  bool resumes() const { return request_.resumption.has_value(); }
  // It asks for a stream that can be resumed.
  bool wants_resume() const { return request_.resume; }

 private:
  enum class Stage { unopened, opening, open, ended, finishing, over, waiting };
  struct Next {             // the data that the message from next() uses
    std::size_t bytes = 0;  // frames that ResendBuffer returned
    std::uint64_t frames = 0;
    bool input = false;    // ResendBuffer returned it
    bool partial = false;  // the bytes in partial_frame_
    bool end = false;      // the message is the last one
    bool ack = false;
  };

  Bytes open_message(client_protocol::Encoder& encoder);
  Bytes input_message(client_protocol::Encoder& encoder);
  bool fetch_queued(bool last);
  Bytes frames_message(client_protocol::Encoder& encoder, std::string_view frames);
  Bytes command_message(client_protocol::Encoder& encoder, const ClientMessage& command);
  Bytes keepalive_message(client_protocol::Encoder& encoder);
  Bytes ack_message(client_protocol::Encoder& encoder);
  Bytes frames_of(client_protocol::Encoder& encoder, std::string_view bytes);
  bool is_ack_due(Time now) const;
  void use(const QueuedInput* whole);

  StreamPipe& pipe_;
  ResumingStream& state_;
  const std::uint64_t number_;
  StreamRequest request_;
  const std::string& token_;
  Stage stage_ = Stage::unopened;
  std::size_t frame_bytes_ = 1;
  std::uint64_t position_ = 0;  // frames of the client; for Opus, packets
  std::uint64_t credit_ = 0;    // frames
  std::vector<StreamPipe::Queued> queued_;
  bool end_queued_ = false;  // the end was added to the input
  bool cut_short_ = false;
  bool idle_ = false;  // nothing was sent since the last check_idle()
  bool keepalive_due_ = false;
  bool ack_waited_ = false, ack_overdue_ = false;  // at the last check_ack()
  std::uint64_t last_ack_ = 0;                     // number in finish()
  std::string partial_frame_;  // the first bytes of a frame whose rest is not queued yet
  Next next_;
};

}  // namespace millrace
