// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/answer.h"
#include "base/error_code.h"
#include "transport/message_batch.h"
#include "transport/server_messages.h"
#include "transport/session_scope.h"
#include "transport/wakeup.h"

namespace millrace {

// What one client is still to be told: bounded, in order, written by the one coroutine that takes
// from it. The stream's owner puts messages in; after error() or closed() nothing more is taken.
// Outlives its sink; its scope outlives it. Confined to one thread.
class ClientOutbox {
 public:
  explicit ClientOutbox(SessionScope& scope);
  ~ClientOutbox();

  // For the stream's owner. See docs/protocol.md for what the client reads.
  void ready(std::string_view stream, std::string_view pipeline, std::uint64_t frames);
  // Requires: the answer is not `none`. False where it is dropped: nothing more is taken, or it
  // would pass the hard limit; then the session ends the stream as a slow reader.
  [[nodiscard]] bool result(const ResultHead& head, const Answer& answer);
  void flushed(std::uint64_t mark);
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames);
  void goaway(std::chrono::milliseconds retry_after);
  // Then the connection is closed with the error's code.
  void error(ErrorCode code, std::string_view message);
  // Then the connection is closed: 1000, or 1012 at a drain.
  void closed(std::uint64_t frames, std::uint64_t chunks, std::uint16_t close_code = 1000);
  // The sink's paused() became false.
  void resume() { to_read_.notify(); }

  std::size_t unsent() const { return unsent_; }            // bytes
  bool full() const { return full_; }                       // the client is not read meanwhile
  bool closing() const { return close_.has_value(); }       // error() or closed() was called
  std::uint64_t rejections() const { return rejections_; }  // so far

  // For the session.
  struct Close {
    std::uint16_t code = 1000;
    std::string_view reason;
    std::optional<ErrorCode> error;
  };
  const std::optional<Close>& close() const { return close_; }
  bool overflowed() const { return overflowed_; }
  void ping();
  // What nobody took yet is dropped: its reader does not read.
  void drop_untaken();
  bool empty() const { return waiting_.empty(); }
  // Exchanges what waits for the content of `batch`, which is cleared first.
  void take(MessageBatch& batch);
  void sent(std::size_t bytes);  // of a batch that was taken
  Wakeup& to_send() { return to_send_; }
  Wakeup& to_read() { return to_read_; }

 private:
  void append_bytes(const ResultHead& head, std::string_view data);
  void commit(Connection::Kind kind, bool is_result);
  void end(Close close);

  SessionScope& scope_;
  Wakeup to_send_;
  Wakeup to_read_;
  MessageBatch waiting_;
  std::size_t unsent_ = 0;
  bool full_ = false;  // until half of it is sent
  std::uint64_t rejections_ = 0;
  std::optional<Close> close_;
  bool overflowed_ = false;
};

}  // namespace millrace
