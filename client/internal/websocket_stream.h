// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/client.h"
#include "client/internal/resume/reconnects.h"
#include "client/internal/resume/resuming_stream.h"
#include "client/internal/stream_connection.h"
#include "client/internal/stream_pipe.h"
#include "transport/websocket/client.h"

namespace millrace {

// One stream over WebSocket: a connection, and, if it is lost and the service resumes streams, the
// next one. Confined to the client's thread.
class WebsocketStream {
 public:
  // `settings` and `resumes` outlive this object. `resumes` is shared by the streams of a client:
  // false once the service has refused the parameter `resume`.
  WebsocketStream(Executor executor, CheckedAccess access, std::shared_ptr<StreamPipe> pipe,
                  StreamRequest request, const ClientSettings& settings, bool& resumes);

  // Returns when the stream is over.
  Task<> run();
  StreamPipe& pipe() { return *pipe_; }

  // The pipe's wake.
  void woken();
  // Fails the stream as lost. run() returns soon afterwards.
  void stop();

 private:
  // These two return true if there is a connection. Otherwise the stream is over.
  Task<bool> open();
  Task<bool> reconnect();
  Task<std::optional<ConnectError>> connect(Duration limit);
  Task<> time_out(Duration limit);
  Task<> wait_until(Time time);
  Duration attempt_time() const;
  std::string address() const;
  void give_up(const std::string& why);

  const Executor executor_;
  const CheckedAccess access_;
  const std::shared_ptr<StreamPipe> pipe_;
  StreamRequest request_;
  const ClientSettings& settings_;
  bool& resumes_;
  ResumingStream state_;
  Reconnects reconnects_;
  Timer timer_;                                   // cancelled to wake the coroutine that waits
  std::unique_ptr<StreamConnection> connection_;  // the newest
  std::string why_lost_;
  bool stopped_ = false;
};

}  // namespace millrace
