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

// The queue of unsent messages to one WebSocket client. Its conversation adds them; one coroutine
// of its session sends them. Accepts every message: while full(), the conversation should add
// fewer. Its scope outlives it. Confined to one thread.
class SessionQueue {
 public:
  // `full` outlives the queue, which sets it.
  SessionQueue(SessionScope& scope, bool& full);
  ~SessionQueue();
  SessionQueue(const SessionQueue&) = delete;
  SessionQueue& operator=(const SessionQueue&) = delete;

  SessionScope& scope() const { return scope_; }

  // Append the next message to bytes(), then call commit(). The next bytes() drops a message that
  // was not committed, because an allocation failed. Requires: not closing().
  std::string& bytes() { return waiting_.bytes(); }
  void commit(Connection::Kind kind, bool is_result = false);
  // A result gave no message of its own: it counts as sent after the messages so far.
  void add_result();
  void ping();
  // Closes the connection after the queued messages, with code 1000, or 1012 if `drained`.
  void close(bool drained);
  // The same, with the close code of the error.
  void close(ErrorCode error);
  // The same, with the code and the reason that the protocol has for the error. `reason` outlives
  // the queue.
  void close(ErrorCode error, std::uint16_t code, std::string_view reason);
  // Drops all messages except one that is being sent. Does nothing while closing().
  void drop_queued();
  // The stream of the results so far is over: they no longer count as results.
  void unmark_results();

  struct Close {
    std::uint16_t code = 1000;
    std::string_view reason{};
    std::optional<ErrorCode> error{};
    bool drained = false;
  };
  const std::optional<Close>& closing() const { return close_; }
  // True from `limits.unsent` unsent bytes on, until half of that is unsent. Meanwhile the client
  // is not read.
  bool full() const { return full_; }
  std::size_t unsent() const { return unsent_; }                       // bytes
  std::size_t reclaimable() const { return closing() ? 0 : unsent_; }  // bytes

  // For the coroutine that sends: no message is queued, except the one returned by next().
  bool empty() const { return next_ + is_sending_ == sending_.size() && waiting_.empty(); }
  // The oldest message. Its bytes stay valid, and count as unsent, until sent(). Requires: not
  // empty(), and sent() was called for the message before.
  MessageBatch::Message next();
  void sent();
  // The number of results sent since the last call.
  std::size_t take_sent_results() { return std::exchange(sent_results_, 0); }
  bool has_sent_results() const { return sent_results_ > 0; }
  // Notified when there is something to send, or has_sent_results().
  Wakeup& to_send() { return to_send_; }
  // Notified when a paused reader may continue.
  Wakeup& to_read() { return to_read_; }

 private:
  void end(Close close);
  void reduce_unsent(std::size_t bytes);

  SessionScope& scope_;
  bool& full_;
  Wakeup to_send_;
  Wakeup to_read_;
  MessageBatch sending_;  // sent up to message next_
  MessageBatch waiting_;  // the messages after sending_
  std::size_t next_ = 0;
  bool is_sending_ = false;  // message next_ is being sent
  std::size_t unsent_ = 0;
  std::size_t sent_results_ = 0;
  std::optional<Close> close_;
};

}  // namespace millrace
