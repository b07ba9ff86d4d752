// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/session_queue.h"

#include <utility>

#include "transport/websocket/frame_head.h"

namespace millrace {

SessionQueue::SessionQueue(SessionScope& scope, bool& full)
    : scope_(scope), full_(full), to_send_(scope.executor()), to_read_(scope.executor()) {}

SessionQueue::~SessionQueue() {
  scope_.stats().send_buffer.add(-static_cast<std::int64_t>(unsent_));
}

void SessionQueue::commit(Connection::Kind kind, bool is_result) {
  const std::size_t bytes = waiting_.commit(kind, is_result);
  unsent_ += bytes;
  if (unsent_ >= scope_.limits().unsent) full_ = true;
  scope_.stats().send_buffer.add(static_cast<std::int64_t>(bytes));
  to_send_.notify();
}

void SessionQueue::add_result() {
  if (closing()) return;
  if (!waiting_.empty()) return waiting_.add_result();
  if (next_ < sending_.size()) return sending_.add_result();
  ++sent_results_;
  to_send_.notify();
}

void SessionQueue::ping() {
  if (!closing()) commit(Connection::Kind::ping);
}

void SessionQueue::close(bool drained) {
  end({.code = drained ? close_codes::restart : close_codes::normal, .drained = drained});
}

void SessionQueue::close(ErrorCode error) { close(error, close_code(error), name_of(error)); }

void SessionQueue::close(ErrorCode error, std::uint16_t code, std::string_view reason) {
  end({.code = code, .reason = reason, .error = error});
}

void SessionQueue::end(Close close) {
  if (closing()) return;
  close_ = close;
  to_send_.notify();
  to_read_.notify();  // a paused reader must continue, to receive the peer's close
}

void SessionQueue::drop_queued() {
  if (closing()) return;
  const std::size_t bytes = waiting_.bytes().size() + sending_.truncate(next_ + is_sending_);
  waiting_ = {};  // also frees the memory
  reduce_unsent(bytes);
}

void SessionQueue::unmark_results() {
  sending_.unmark_results();
  waiting_.unmark_results();
  sent_results_ = 0;
}

MessageBatch::Message SessionQueue::next() {
  if (next_ == sending_.size()) {
    next_ = 0;
    sending_.clear();
    std::swap(sending_, waiting_);
  }
  is_sending_ = true;
  return sending_[next_];
}

void SessionQueue::sent() {
  is_sending_ = false;
  const auto message = sending_[next_++];
  const std::size_t bytes = message.bytes.size();
  sent_results_ += message.results;
  if (empty()) {
    next_ = 0;
    sending_.clear();
  }
  reduce_unsent(bytes);
}

void SessionQueue::reduce_unsent(std::size_t bytes) {
  unsent_ -= bytes;
  scope_.stats().send_buffer.add(-static_cast<std::int64_t>(bytes));
  if (!full_ || unsent_ > scope_.limits().unsent / 2) return;
  full_ = false;
  to_read_.notify();
}

}  // namespace millrace
