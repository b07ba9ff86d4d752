// SPDX-License-Identifier: Apache-2.0
#include "transport/client_inbox.h"

#include <utility>

namespace millrace {

std::optional<std::string> ClientInbox::take(const Connection::Message& message) {
  stats_.received.add(message.bytes.size());
  if (outbox_.closing()) return std::nullopt;
  if (message.kind != Connection::Kind::text) {
    take_frames(message);
    return std::nullopt;
  }
  const Time begin = Clock::now();
  auto command = parse_client_message(message.text());
  stats_.parse.observe(Clock::now() - begin);
  if (!command) {
    stats_.rejected[MessageFault::schema].add();
    return std::move(command.error());
  }
  stats_.message.observe(static_cast<std::int64_t>(message.bytes.size()));
  obey(*command, message.arrived);
  return std::nullopt;
}

void ClientInbox::take_frames(const Connection::Message& message) {
  if (message.bytes.empty()) {
    stats_.messages[MessageType::control].add();
    return;
  }
  if (ended_) return outbox_.rejected(ErrorCode::unknown_stream, "the stream has ended", 0);
  const std::uint64_t rejections = outbox_.rejections();
  sink_.frames(message.bytes, message.arrived);
  if (outbox_.rejections() != rejections) return;
  stats_.messages[MessageType::data].add();
  stats_.message.observe(static_cast<std::int64_t>(message.bytes.size()));
}

void ClientInbox::obey(const ClientMessage& command, Time arrived) {
  using namespace client_message;
  const bool ends = std::holds_alternative<End>(command);
  if (ended_ && !ends && !std::holds_alternative<Keepalive>(command))
    return outbox_.rejected(ErrorCode::unknown_stream, "the stream has ended", 0);
  stats_.messages[ends ? MessageType::close : MessageType::control].add();

  if (const auto* flush = std::get_if<Flush>(&command)) sink_.flush(flush->mark, arrived);
  if (std::holds_alternative<Reset>(command)) sink_.reset(arrived);
  if (const auto* gap = std::get_if<Gap>(&command)) sink_.gap(gap->frames, arrived);
  if (ends && !std::exchange(ended_, true)) sink_.end(arrived);
}

}  // namespace millrace
