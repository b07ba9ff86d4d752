// SPDX-License-Identifier: Apache-2.0
#include "transport/session_outbox.h"

#include <cassert>
#include <utility>

namespace millrace {
namespace {

constexpr std::uint16_t close_normal = 1000;
constexpr std::uint16_t close_restart = 1012;

}  // namespace

SessionOutbox::SessionOutbox(SessionScope& scope, std::string peer)
    : scope_(scope),
      peer_(std::move(peer)),
      to_send_(scope.executor()),
      to_read_(scope.executor()) {}

SessionOutbox::~SessionOutbox() {
  scope_.stats().send_buffer.add(-static_cast<std::int64_t>(unsent_));
}

void SessionOutbox::ready(std::string_view stream, std::string_view pipeline, std::uint64_t frames,
                          std::size_t /*frame_bytes*/) {
  if (closing()) return;
  append_ready(waiting_.bytes(), stream, pipeline, frames);
  commit(Connection::Kind::text, false);
}

void SessionOutbox::result(const ResultHead& head, const Answer& answer) {
  assert(answer.kind != Answer::Kind::none);
  if (closing()) return;
  commit(append_told(head, answer), true);
}

void SessionOutbox::flushed(std::uint64_t mark) {
  if (closing()) return;
  append_flushed(waiting_.bytes(), mark);
  commit(Connection::Kind::text, false);
}

void SessionOutbox::rejected(ErrorCode code, std::string_view message, std::uint64_t frames) {
  if (closing()) return;
  ++rejections_;
  if (const auto fault = fault_of(code, frames)) scope_.stats().rejected[*fault].add();
  append_rejected(waiting_.bytes(), code, message, frames);
  commit(Connection::Kind::text, false);
}

void SessionOutbox::warning(ErrorCode code, std::string_view message) {
  if (closing()) return;
  append_warning(waiting_.bytes(), code, message);
  commit(Connection::Kind::text, false);
}

void SessionOutbox::goaway(std::chrono::milliseconds retry_after) {
  if (closing()) return;
  append_goaway(waiting_.bytes(), retry_after);
  commit(Connection::Kind::text, false);
}

void SessionOutbox::error(ErrorCode code, std::string_view message) {
  if (closing()) return;
  append_error(waiting_.bytes(), code, message);
  commit(Connection::Kind::text, false);
  end({.code = close_code(code), .reason = name_of(code), .error = code});
}

void SessionOutbox::closed(std::uint64_t frames, std::uint64_t chunks, bool drained) {
  if (closing()) return;
  append_closed(waiting_.bytes(), frames, chunks);
  commit(Connection::Kind::text, false);
  end({.code = drained ? close_restart : close_normal, .reason = {}, .error = {}});
}

void SessionOutbox::ping() {
  if (!closing()) commit(Connection::Kind::ping, false);
}

void SessionOutbox::drop_untaken() {
  if (closing()) return;
  const std::size_t bytes = waiting_.bytes().size() + sending_.truncate(next_ + under_way_);
  waiting_ = {};  // its memory as well
  uncount(bytes);
}

MessageBatch::Message SessionOutbox::next() {
  if (next_ == sending_.size()) {
    next_ = 0;
    sending_.clear();
    std::swap(sending_, waiting_);
  }
  under_way_ = true;
  return sending_[next_];
}

void SessionOutbox::sent() {
  under_way_ = false;
  const std::size_t bytes = sending_[next_++].bytes.size();
  if (empty()) {
    next_ = 0;
    sending_.clear();
  }
  uncount(bytes);
}

void SessionOutbox::uncount(std::size_t bytes) {
  unsent_ -= bytes;
  scope_.stats().send_buffer.add(-static_cast<std::int64_t>(bytes));
  if (!full_ || unsent_ > scope_.limits().unsent / 2) return;
  full_ = false;
  to_read_.notify();
}

Connection::Kind SessionOutbox::append_told(const ResultHead& head, const Answer& answer) {
  std::string& out = waiting_.bytes();
  const std::size_t begin = out.size(), told = scope_.limits().told;
  // No message is shorter than its answer, but that of one that failed: its text is not sent.
  if (answer.kind == Answer::Kind::error || answer.data.size() <= told) {
    const bool is_binary = answer.kind == Answer::Kind::bytes;
    if (is_binary)
      append_bytes(head, answer.data);
    else
      append_result(out, head, answer);
    if (out.size() - begin <= told)
      return is_binary ? Connection::Kind::binary : Connection::Kind::text;
    out.resize(begin);
  }
  append_too_long(out, head);
  return Connection::Kind::text;
}

void SessionOutbox::append_bytes(const ResultHead& head, std::string_view data) {
  const client_protocol::Result result{.seq = head.seq,
                                       .begin = head.begin,
                                       .end = head.end,
                                       .begin_s = static_cast<double>(head.begin) / head.rate,
                                       .end_s = static_cast<double>(head.end) / head.rate,
                                       .flags = head.flags,
                                       .data = std::as_bytes(std::span(data))};
  const Bytes message = scope_.encoder().encode(result);
  waiting_.bytes().append(reinterpret_cast<const char*>(message.data()), message.size());
}

void SessionOutbox::commit(Connection::Kind kind, bool is_result) {
  const std::size_t bytes = waiting_.commit(kind, is_result);
  unsent_ += bytes;
  if (unsent_ >= scope_.limits().unsent) full_ = true;
  scope_.stats().send_buffer.add(static_cast<std::int64_t>(bytes));
  to_send_.notify();
}

void SessionOutbox::end(Close close) {
  close_ = close;
  // A paused reader goes on, to see the peer's close.
  to_read_.notify();
}

}  // namespace millrace
