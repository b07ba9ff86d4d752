// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/client_outbox.h"
#include "transport/message_batch.h"
#include "transport/session_scope.h"
#include "transport/wakeup.h"

namespace millrace {

// What one WebSocket client is still to be told: written by the one coroutine that takes from it.
// Its scope outlives it. Confined to one thread.
class SessionOutbox final : public ClientOutbox {
 public:
  explicit SessionOutbox(SessionScope& scope, std::string peer = {});
  ~SessionOutbox() override;

  std::string peer() const override { return peer_; }
  void ready(std::string_view stream, std::string_view pipeline, std::uint64_t frames,
             std::size_t frame_bytes) override;
  void result(const ResultHead& head, const Answer& answer) override;
  void flushed(std::uint64_t mark) override;
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override;
  void warning(ErrorCode code, std::string_view message) override;
  void goaway(std::chrono::milliseconds retry_after) override;
  // Then the connection is closed with the error's code.
  void error(ErrorCode code, std::string_view message) override;
  // Then the connection is closed: 1000, or 1012 at a drain.
  void closed(std::uint64_t frames, std::uint64_t chunks, bool drained) override;
  void drop_untaken() override;
  void resume() override { to_read_.notify(); }
  std::size_t reclaimable() const override { return closing() ? 0 : unsent_; }
  void has_room() override {}  // TCP pushes back, there is no credit

  bool full() const override { return full_; }              // the client is not read meanwhile
  bool closing() const { return close_.has_value(); }       // error() or closed() was called
  std::uint64_t rejections() const { return rejections_; }  // so far

  struct Close {
    std::uint16_t code = 1000;
    std::string_view reason;
    std::optional<ErrorCode> error;
  };
  const std::optional<Close>& close() const { return close_; }
  void ping();
  std::size_t unsent() const { return unsent_; }  // bytes
  // No message waits, not counting the one that next() gave.
  bool empty() const { return next_ + under_way_ == sending_.size() && waiting_.empty(); }
  // The oldest message, for the one coroutine that sends. It stays where it is, and counts as
  // unsent, until sent() is called. Requires: not empty(), and the one before was sent.
  MessageBatch::Message next();
  void sent();
  Wakeup& to_send() { return to_send_; }
  Wakeup& to_read() { return to_read_; }

 private:
  // What the client is told of it.
  Connection::Kind append_told(const ResultHead& head, const Answer& answer);
  void append_bytes(const ResultHead& head, std::string_view data);
  void commit(Connection::Kind kind, bool is_result);
  void uncount(std::size_t bytes);
  void end(Close close);

  SessionScope& scope_;
  const std::string peer_;
  Wakeup to_send_;
  Wakeup to_read_;
  MessageBatch sending_;  // sent up to message next_
  MessageBatch waiting_;  // those that came since
  std::size_t next_ = 0;
  bool under_way_ = false;  // message next_ is being sent
  std::size_t unsent_ = 0;
  bool full_ = false;  // until half of it is sent
  std::uint64_t rejections_ = 0;
  std::optional<Close> close_;
};

}  // namespace millrace
