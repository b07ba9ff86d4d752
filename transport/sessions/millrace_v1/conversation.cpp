// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/millrace_v1/conversation.h"

#include <cassert>
#include <span>
#include <utility>

#include "schemas/json_commands.h"
#include "schemas/server_messages.h"

namespace millrace {

std::optional<RequestError> MillraceV1Conversation::open(StreamAdmission& admission,
                                                         StreamRequest request) {
  auto refused = Conversation::open(admission, std::move(request));
  ended_ = !refused && stream()->has_ended();
  return refused;
}

void MillraceV1Conversation::received(const Connection::Message& message) {
  message.kind == Connection::Kind::text ? handle_command(message) : handle_frames(message);
}

// An empty message is a keepalive.
void MillraceV1Conversation::handle_frames(const Connection::Message& message) {
  TransportStats& stats = queue().scope().stats();
  if (message.bytes.empty()) return stats.messages[MessageType::control].add();
  if (rejects_input()) return;
  const std::uint64_t rejections = rejections_;
  pieces_.begin(*stream(), message.bytes, message.arrived);
  if (rejections_ != rejections) return;
  stats.messages[MessageType::data].add();
  stats.message.observe(static_cast<std::int64_t>(message.bytes.size()));
}

void MillraceV1Conversation::proceed() { stream() ? pieces_.proceed(*stream()) : pieces_.clear(); }

void MillraceV1Conversation::handle_command(const Connection::Message& message) {
  TransportStats& stats = queue().scope().stats();
  const Time begin = Clock::now();
  const auto command = parse_client_message(message.text(), queue().scope().limits().text);
  stats.parse.observe(Clock::now() - begin);
  if (!command) {
    stats.rejected[MessageFault::schema].add();
    return fail(ErrorCode::schema, command.error(), message.arrived);
  }
  stats.message.observe(static_cast<std::int64_t>(message.bytes.size()));
  apply_command(*command, message.arrived);
}

void MillraceV1Conversation::apply_command(const ClientMessage& command, Time arrived) {
  using namespace client_message;
  // Also after the client's end: messages still follow.
  if (const auto* ack = std::get_if<Ack>(&command)) {
    queue().scope().stats().messages[MessageType::control].add();
    return stream()->acknowledge(ack->n, arrived);
  }
  const bool ends = std::holds_alternative<End>(command);
  if (!ends && !std::holds_alternative<Keepalive>(command) && rejects_input()) return;
  queue().scope().stats().messages[ends ? MessageType::close : MessageType::control].add();

  if (const auto* flush = std::get_if<Flush>(&command)) stream()->flush(flush->mark, arrived);
  if (std::holds_alternative<Reset>(command)) stream()->reset(arrived);
  if (const auto* gap = std::get_if<Gap>(&command)) stream()->gap(gap->frames, arrived);
  if (const auto* post = std::get_if<Message>(&command)) stream()->post(post->data, arrived);
  if (const auto* set = std::get_if<Set>(&command)) stream()->set(set->options, arrived);
  if (ends && !std::exchange(ended_, true)) stream()->end(arrived);
}

bool MillraceV1Conversation::rejects_input() {
  // A stream that resumes may have failed, and its client may not know that yet.
  if (ended_ && !stream()->outlives_connection())
    rejected(ErrorCode::unknown_stream, "the stream has ended", 0);
  return ended_;
}

template <class Append>
void MillraceV1Conversation::send(Append append) {
  if (queue().closing()) return;
  append(queue().bytes());
  queue().commit(Connection::Kind::text);
}

// The same for a message in the order of the stream.
template <class Append>
void MillraceV1Conversation::send_in_order(Append append) {
  send([&, number = take_number()](std::string& out) {
    append(out);
    if (number) append_message_number(out, *number);
  });
}

void MillraceV1Conversation::ready(const StreamReady& ready) {
  send([&](std::string& out) { append_ready(out, ready); });
}

void MillraceV1Conversation::acknowledged(const ResumePoint& point) {
  send([&](std::string& out) { append_ack(out, point); });
}

void MillraceV1Conversation::flushed(std::uint64_t mark, std::uint64_t seq) {
  const bool numbered = number_ != nullptr;
  send_in_order([&](std::string& out) {
    append_flushed(out, mark, numbered ? std::optional(seq) : std::nullopt);
  });
}

void MillraceV1Conversation::rejected(ErrorCode code, std::string_view message,
                                      std::uint64_t frames) {
  if (queue().closing()) return;
  ++rejections_;
  if (const auto fault = fault_of(code, frames)) queue().scope().stats().rejected[*fault].add();
  send_in_order([&](std::string& out) { append_rejected(out, code, message, frames); });
}

void MillraceV1Conversation::warning(ErrorCode code, std::string_view message) {
  send([&](std::string& out) { append_warning(out, code, message); });
}

void MillraceV1Conversation::goaway() {
  const auto retry_after = queue().scope().retry_times().after_goaway();
  send([&](std::string& out) { append_goaway(out, retry_after); });
}

void MillraceV1Conversation::error(ErrorCode code, std::string_view message) {
  send_in_order([&](std::string& out) { append_error(out, code, message); });
  queue().close(code);
}

void MillraceV1Conversation::closed(std::uint64_t frames, std::uint64_t chunks, bool drained) {
  send_in_order([&](std::string& out) { append_closed(out, frames, chunks); });
  queue().close(drained);
}

void MillraceV1Conversation::result(const ResultHead& head, const Answer& answer) {
  assert(answer.kind != Answer::Kind::none);
  const MessageNumber* number = take_number();
  if (queue().closing()) return;
  queue().commit(append_answer(head, answer, number), true);
}

void MillraceV1Conversation::message(const MessageHead& head, const Answer& message) {
  const MessageNumber* number = take_number();
  if (queue().closing()) return;
  std::string& out = queue().bytes();
  const bool is_binary = message.kind == Answer::Kind::bytes;
  if (is_binary)
    out.append(text_in(queue().scope().encoder().encode(
        client_protocol::Message{.number = head.number,
                                 .seq = head.seq,
                                 .data = std::as_bytes(std::span(message.data)),
                                 .n = number ? std::optional(number->n) : std::nullopt})));
  else
    append_message(out, head, message);
  if (number && !is_binary) append_message_number(out, *number);
  queue().commit(is_binary ? Connection::Kind::binary : Connection::Kind::text, true);
}

// The answer is checked first: a message is never shorter than its answer, except for a failed row,
// whose text is not sent.
Connection::Kind MillraceV1Conversation::append_answer(const ResultHead& head, const Answer& answer,
                                                       const MessageNumber* number) {
  std::string& out = queue().bytes();
  const std::size_t begin = out.size(), longest = queue().scope().limits().max_message_sent;
  if (answer.kind == Answer::Kind::error || answer.data.size() <= longest) {
    const bool is_binary = answer.kind == Answer::Kind::bytes;
    if (is_binary)
      append_bytes(head, answer.data, number);
    else
      append_result(out, head, answer);
    if (number && !is_binary) append_message_number(out, *number);
    if (out.size() - begin <= longest)
      return is_binary ? Connection::Kind::binary : Connection::Kind::text;
    out.resize(begin);
  }
  append_too_long(out, head);
  if (number) append_message_number(out, *number);
  return Connection::Kind::text;
}

void MillraceV1Conversation::append_bytes(const ResultHead& head, std::string_view data,
                                          const MessageNumber* number) {
  const client_protocol::Result result{.seq = head.seq,
                                       .begin = head.begin,
                                       .end = head.end,
                                       .begin_s = static_cast<double>(head.begin) / head.rate,
                                       .end_s = static_cast<double>(head.end) / head.rate,
                                       .flags = head.flags,
                                       .data = std::as_bytes(std::span(data)),
                                       .number = number ? std::optional(*number) : std::nullopt};
  const Bytes message = queue().scope().encoder().encode(result);
  queue().bytes().append(text_in(message));
}

}  // namespace millrace
