// SPDX-License-Identifier: Apache-2.0
#include "transport/client_outbox.h"

#include <cassert>
#include <utility>

namespace millrace {
namespace {

// By length and kind of the fault: half a frame loses no whole one.
std::optional<MessageFault> fault_of(ErrorCode code, std::uint64_t frames) {
  switch (code) {
    case ErrorCode::format: return MessageFault::format;
    case ErrorCode::values: return frames == 0 ? MessageFault::format : MessageFault::nonfinite;
    case ErrorCode::too_long: return MessageFault::size;
    case ErrorCode::schema:
    case ErrorCode::unknown_stream: return MessageFault::schema;
    default: return std::nullopt;
  }
}

}  // namespace

ClientOutbox::ClientOutbox(SessionScope& scope)
    : scope_(scope), to_send_(scope.executor()), to_read_(scope.executor()) {}

ClientOutbox::~ClientOutbox() {
  scope_.stats().send_buffer.add(-static_cast<std::int64_t>(unsent_));
}

void ClientOutbox::ready(std::string_view stream, std::string_view pipeline, std::uint64_t frames) {
  if (closing()) return;
  append_ready(waiting_.bytes(), stream, pipeline, frames);
  commit(Connection::Kind::text, false);
}

bool ClientOutbox::result(const ResultHead& head, const Answer& answer) {
  assert(answer.kind != Answer::Kind::none);
  if (closing() || overflowed_) return false;
  // Who has read everything is not slow, however long one answer is.
  if (unsent_ > 0 && unsent_ + answer.data.size() > scope_.limits().overflow) {
    overflowed_ = true;
    return false;
  }
  if (answer.kind == Answer::Kind::bytes) {
    append_bytes(head, answer.data);
    commit(Connection::Kind::binary, true);
  } else {
    append_result(waiting_.bytes(), head, answer);
    commit(Connection::Kind::text, true);
  }
  return true;
}

void ClientOutbox::flushed(std::uint64_t mark) {
  if (closing()) return;
  append_flushed(waiting_.bytes(), mark);
  commit(Connection::Kind::text, false);
}

void ClientOutbox::rejected(ErrorCode code, std::string_view message, std::uint64_t frames) {
  if (closing()) return;
  ++rejections_;
  if (const auto fault = fault_of(code, frames)) scope_.stats().rejected[*fault].add();
  append_rejected(waiting_.bytes(), code, message, frames);
  commit(Connection::Kind::text, false);
}

void ClientOutbox::goaway(std::chrono::milliseconds retry_after) {
  if (closing()) return;
  append_goaway(waiting_.bytes(), retry_after);
  commit(Connection::Kind::text, false);
}

void ClientOutbox::error(ErrorCode code, std::string_view message) {
  if (closing()) return;
  append_error(waiting_.bytes(), code, message);
  commit(Connection::Kind::text, false);
  end({.code = close_code(code), .reason = name_of(code), .error = code});
}

void ClientOutbox::closed(std::uint64_t frames, std::uint64_t chunks, std::uint16_t close_code) {
  if (closing()) return;
  append_closed(waiting_.bytes(), frames, chunks);
  commit(Connection::Kind::text, false);
  end({.code = close_code, .reason = {}, .error = {}});
}

void ClientOutbox::ping() {
  if (!closing()) commit(Connection::Kind::ping, false);
}

void ClientOutbox::drop_untaken() {
  std::size_t bytes = waiting_.bytes().size();
  waiting_.clear();
  sent(bytes);
}

void ClientOutbox::take(MessageBatch& batch) {
  batch.clear();
  std::swap(batch, waiting_);
}

void ClientOutbox::sent(std::size_t bytes) {
  unsent_ -= bytes;
  scope_.stats().send_buffer.add(-static_cast<std::int64_t>(bytes));
  if (!full_ || unsent_ > scope_.limits().full / 2) return;
  full_ = false;
  to_read_.notify();
}

void ClientOutbox::append_bytes(const ResultHead& head, std::string_view data) {
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

void ClientOutbox::commit(Connection::Kind kind, bool is_result) {
  const std::size_t bytes = waiting_.commit(kind, is_result);
  unsent_ += bytes;
  if (unsent_ >= scope_.limits().full) full_ = true;
  scope_.stats().send_buffer.add(static_cast<std::int64_t>(bytes));
  to_send_.notify();
}

void ClientOutbox::end(Close close) {
  close_ = close;
  // A paused reader goes on, to see the peer's close.
  to_read_.notify();
}

}  // namespace millrace
