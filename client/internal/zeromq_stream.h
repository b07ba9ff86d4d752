// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "client/client.h"
#include "client/internal/outgoing_stream.h"
#include "client/internal/resume/reconnects.h"
#include "client/internal/resume/resuming_stream.h"
#include "client/internal/stream_pipe.h"
#include "schemas/client_messages.h"

namespace millrace {

// One stream over ZeroMQ: over one connection, and, if this is lost and the service resumes
// streams, over the next one. Adds the received events to its pipe, and ends it.
//
// Does no I/O: the caller sends the messages of outgoing(), which any call here may change, and
// calls expire() at due(). Confined to the client's thread.
class ZeromqStream {
 public:
  // `token`, `settings` and `resumes` outlive it. `resumes` is shared by the streams of a client:
  // false once the service has refused `resume`.
  ZeromqStream(std::shared_ptr<StreamPipe> pipe, StreamRequest request, const std::string& token,
               const ClientSettings& settings, bool& resumes, Time now);

  StreamPipe& pipe() { return *pipe_; }
  OutgoingStream& outgoing() { return outgoing_; }
  // It has ended, and nothing more is sent.
  bool is_over() const { return outgoing_.is_over(); }

  // A message of the service to this stream. False if it is invalid.
  [[nodiscard]] bool receive(const client_protocol::ToClient& message, Time now);
  // The connection has ended, or could not be made.
  void lose(const std::string& why, Time now);
  // Ends the stream. The service, if it has received Open, receives End.
  void fail(StreamFailure why);
  // The pipe's wake.
  void woken();

  // True if the stream continues over the next connection, as soon as there is one.
  bool awaits_connection() const { return awaits_connection_; }
  // Requests the stream over the current connection. Requires: it waits.
  void request(Time now);

  // When the next time limit is over; Time::max() without one.
  Time due() const { return due_; }
  enum class Expired {
    nothing,
    wait,     // call request(), after connecting if there is no connection
    silence,  // the connection is lost: the service has answered nothing over it
  };
  // `heard`: when the last message of any stream was received. Does nothing before due().
  Expired expire(Time now, Time heard);

  // The time for the service to answer a stream that is resumed.
  Duration attempt_time() const { return reconnects_.attempt_time(settings_.connect); }

 private:
  bool receive_ready(const client_protocol::Ready& ready, Time now);
  void receive_refusal(const client_protocol::Error& error, Time now);
  void wait(std::string problem, Duration delay, Time now);
  void give_up(const std::string& why);
  void limit_user();

  const std::shared_ptr<StreamPipe> pipe_;
  const ClientSettings& settings_;
  bool& resumes_;
  ResumingStream state_;
  OutgoingStream outgoing_;
  Reconnects reconnects_;
  Time due_;
  Time requested_{};
  bool awaits_user_ = false;  // due_ limits a stream that is held up
  bool awaits_connection_ = false;
  bool conflicted_ = false;  // since the connection was lost
  std::string why_lost_;
  std::string problem_;  // why the last attempt to resume it has failed
};

}  // namespace millrace
