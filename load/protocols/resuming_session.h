// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "client/internal/resume/reconnects.h"
#include "client/internal/resume/resuming_stream.h"
#include "load/protocols/native_session.h"
#include "schemas/stream_request.h"

namespace millrace::load {

// The same for a stream that survives its connections (docs/resume.md): keeps what the service has
// not acknowledged, and reports each message once, over all connections.
class ResumingSession final : public NativeSession {
 public:
  // `request` with the stream's name; requires: request.resume.
  ResumingSession(std::uint32_t client, StreamRequest request);

  bool is_connected() const override { return connected_; }
  bool has_room() const override { return state_.outgoing().all_sent(); }
  bool can_resume() const override;
  std::optional<Time> next_connection(Time now) override;
  RequestedStream resuming_request() override;
  bool outlasts(std::string_view status) override;

  // The stream is open once `ready` has arrived.
  void start(Time, ClientSink&) override {}
  void send(Bytes frames, FrameWriter& to) override;
  void commit(Time due, FrameWriter& to) override;
  void end(FrameWriter& to) override;
  bool received(bool is_text, Bytes message, Time now, ClientSink& sink, FrameWriter& to) override;

 private:
  void add(QueuedInput input, FrameWriter& to);
  void write(FrameWriter& to);
  bool take(bool is_text, Bytes bytes, Time now, ClientSink& sink);
  bool take_ready(const ServerMessage& ready, Time now, ClientSink& sink);

  StreamRequest request_;
  ResumingStream state_;
  Reconnects reconnects_;
  bool connected_ = false;  // `ready` has arrived over the current connection
  bool conflicted_ = false;
  bool ack_due_ = false;  // an acknowledgement is to be written
  bool ends_ = false;     // its end was given
};

}  // namespace millrace::load
