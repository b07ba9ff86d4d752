// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/client.h"
#include "client/internal/resume/resuming_stream.h"
#include "client/internal/stream_pipe.h"
#include "transport/websocket/connection.h"

namespace millrace {

// One connection of a stream over WebSocket: sends the input queued in the stream's pipe, adds the
// received events to it, and notices that the connection is lost. Confined to the client's thread.
class StreamConnection {
 public:
  // The request of the connection.
  enum class Asked {
    open,  // a stream that ends with its connection
    open_to_resume,
    resume,  // the stream of an earlier connection
  };

  // `pipe`, `state` and `settings` outlive this object. `answer`: the time for `ready` of a stream
  // that is resumed.
  StreamConnection(Executor executor, std::unique_ptr<Connection> connection, StreamPipe& pipe,
                   ResumingStream& state, Asked asked, const ClientSettings& settings,
                   Duration answer);

  // Returns when the connection has ended.
  Task<> run();
  // Then: why it has ended.
  const std::string& why_lost() const { return why_lost_; }
  // True if one side has ended the stream by a close.
  bool has_closed() const { return closed_; }
  // When `ready` was received; nullopt if it was not.
  std::optional<Time> ready_at() const { return ready_at_; }

  // The pipe's wake.
  void woken();
  void abort() { connection_->abort(); }

 private:
  Task<> read();
  Task<> write();
  Task<> watch();
  Duration longest_silence() const;

  bool receive(const Connection::Message& message);
  bool receive_text(std::string_view text);
  bool receive_bytes(Bytes message);
  bool receive_ready(ServerMessage& ready);
  Task<> await_user();

  Task<bool> await_ready();
  Task<bool> send_queued();
  bool is_ack_due() const;
  bool is_ack_overdue() const;
  void add_ack();
  Task<> await_queued();
  Task<bool> send(Connection::Kind kind, std::string_view message);
  void add(Connection::Kind kind, std::string_view message);
  Task<bool> flush();
  Task<> close();
  Task<> abort_on_timeout();

  void lose(std::string why);

  const Executor executor_;
  const std::unique_ptr<Connection> connection_;
  StreamPipe& pipe_;
  ResumingStream& state_;
  const Asked asked_;
  const ClientSettings& settings_;
  const Time answer_due_;
  Timer write_timer_, read_timer_, watch_timer_;  // cancelled to wake the coroutine that waits
  Time sent_ = Clock::now();
  Time ack_limit_{};  // when an ack that is due is sent alone, while input may follow
  std::int64_t written_ = 0, unwritten_ = 0;  // bytes
  std::optional<Time> ready_at_;
  std::string why_lost_;
  bool closed_ = false;
  bool ended_ = false;
};

}  // namespace millrace
