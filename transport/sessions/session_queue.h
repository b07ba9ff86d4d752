// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error_code.h"
#include "transport/net/wakeup.h"
#include "transport/sessions/message_batch.h"
#include "transport/sessions/session_scope.h"

namespace millrace {

// The messages to one WebSocket client: added by its conversation, sent by one coroutine of its
// session. It takes every message; full() asks for fewer. Its scope outlives it. Confined to one
// thread.
class SessionQueue {
 public:
  // `full` outlives the queue, which sets it.
  SessionQueue(SessionScope& scope, bool& full);
  ~SessionQueue();
  SessionQueue(const SessionQueue&) = delete;
  SessionQueue& operator=(const SessionQueue&) = delete;

  SessionScope& scope() { return scope_; }

  // The next message is appended to this, then committed. A message that was not committed, because
  // an allocation failed, is dropped. Requires: not closing().
  std::string& bytes() { return waiting_.bytes(); }
  void commit(Connection::Kind kind, bool is_result = false);
  void ping();
  // Closes the connection after the messages so far, with code 1000, or 1012 at a drain.
  void close(bool drained);
  // The same, with the error's code.
  void close(ErrorCode error);
  // Drops the messages that are not being sent; nothing while closing().
  void drop_untaken();
  // The results so far were of a stream that is over: they no longer count as results.
  void disown_results();

  struct Close {
    std::uint16_t code = 1000;
    std::string_view reason{};
    std::optional<ErrorCode> error{};
    bool drained = false;
  };
  const std::optional<Close>& closing() const { return close_; }
  // From `limits.unsent` unsent bytes on, until half of that is unsent. The client is not read.
  bool full() const { return full_; }
  std::size_t unsent() const { return unsent_; }                       // bytes
  std::size_t reclaimable() const { return closing() ? 0 : unsent_; }  // bytes

  // For the coroutine that sends. No message waits, not counting the one that next() gave.
  bool empty() const { return next_ + under_way_ == sending_.size() && waiting_.empty(); }
  // The oldest message. It stays where it is, and counts as unsent, until sent() is called.
  // Requires: not empty(), and the one before was sent.
  MessageBatch::Message next();
  void sent();
  // Results that were sent since the last call.
  std::size_t take_sent_results() { return std::exchange(sent_results_, 0); }
  Wakeup& to_send() { return to_send_; }
  // For the coroutine that reads, while it does not.
  Wakeup& to_read() { return to_read_; }

 private:
  void end(Close close);
  void uncount(std::size_t bytes);

  SessionScope& scope_;
  bool& full_;
  Wakeup to_send_;
  Wakeup to_read_;
  MessageBatch sending_;  // sent up to message next_
  MessageBatch waiting_;  // the messages behind them
  std::size_t next_ = 0;
  bool under_way_ = false;  // message next_ is being sent
  std::size_t unsent_ = 0;
  std::size_t sent_results_ = 0;
  std::optional<Close> close_;
};

}  // namespace millrace
