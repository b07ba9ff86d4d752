// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/message_reader.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "schemas/text.h"

namespace millrace {
namespace {

constexpr std::size_t longest_control = 125;
constexpr std::size_t kept_message = 8 * 1024;  // capacity kept for later messages

// The close codes that a peer may send: those of RFC 6455, 7.4, and 1012 to 1014, which were
// registered later.
bool is_close_code(unsigned code) {
  if (code >= 3000) return code <= 4999;
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

MessageReader::Event close_of(Bytes payload) {
  using Fault = MessageReader::Fault;
  if (payload.empty()) return MessageReader::Close{};
  if (payload.size() == 1) return Fault{close_codes::protocol_error};
  const unsigned code =
      std::to_integer<unsigned>(payload[0]) << 8 | std::to_integer<unsigned>(payload[1]);
  if (!is_close_code(code)) return Fault{close_codes::protocol_error};
  const std::string_view reason = text_in(payload.subspan(2));
  if (!is_utf8(reason)) return Fault{close_codes::bad_text};
  return MessageReader::Close{static_cast<std::uint16_t>(code), reason};
}

// True if `text` is an incomplete UTF-8 character that further bytes can complete.
bool begins_character(std::string_view text) {
  if (text.size() >= 4) return false;
  const std::string begin(text);
  return first_character(begin + "\x80\x80\x80").size > text.size() ||
         first_character(begin + "\xbf\xbf\xbf").size > text.size();
}

}  // namespace

std::optional<MessageReader::Event> MessageReader::next(MutableBytes& unread) {
  forget_message();
  for (;;) {
    if (!rest_) {
      const auto head = FrameHead::read(unread);
      if (!head) return std::nullopt;
      if (const auto fault = fault_of(*head)) return *fault;
      const bool is_whole = unread.size() - head->size >= head->payload;
      if (is_whole && (head->is_control() || (head->is_final() && !within_)))
        return read_frame(*head, unread);
      if (!is_whole && stays_in_place(*head)) return std::nullopt;
      rest_ = head;
      within_ = true;
      if (head->opcode() != Opcode::continuation) is_text_ = head->opcode() == Opcode::text;
      unread = unread.subspan(head->size);
    }
    if (auto event = read_part(unread)) return event;
    if (rest_) return std::nullopt;
  }
}

void MessageReader::forget_message() {
  if (within_) return;
  if (message_.capacity() > kept_message) std::vector<std::byte>().swap(message_);
  message_.clear();
  checked_ = 0;
}

std::optional<MessageReader::Fault> MessageReader::fault_of(const FrameHead& head) const {
  if (head.has_reserved_bits() || !head.has_good_length() || head.masked != (role_ == Role::server))
    return Fault{close_codes::protocol_error};
  if (head.is_control()) {
    const bool good =
        head.opcode() <= Opcode::pong && head.is_final() && head.payload <= longest_control;
    return good ? std::nullopt : std::optional(Fault{close_codes::protocol_error});
  }
  if (head.opcode() > Opcode::binary || (head.opcode() == Opcode::continuation) != within_)
    return Fault{close_codes::protocol_error};
  if (head.payload > longest_ - message_.size()) return Fault{close_codes::too_big};
  return std::nullopt;
}

bool MessageReader::stays_in_place(const FrameHead& head) const {
  if (head.is_control()) return true;
  return head.opcode() == Opcode::binary && head.is_final() &&
         head.payload + head.size <= in_place_;
}

// Reads a complete frame: a control frame or a whole message.
MessageReader::Event MessageReader::read_frame(const FrameHead& head, MutableBytes& unread) {
  const MutableBytes payload = unread.subspan(head.size, head.payload);
  unread = unread.subspan(head.size + payload.size());
  if (head.masked) mask(payload, head.key);
  switch (head.opcode()) {
    case Opcode::ping: return Ping{payload};
    case Opcode::pong: return Pong{};
    case Opcode::close: return close_of(payload);
    default: break;
  }
  const bool is_text = head.opcode() == Opcode::text;
  if (is_text && !is_utf8(text_in(payload))) return Fault{close_codes::bad_text};
  return Message{is_text, payload};
}

// Gathers the bytes of an incomplete frame that have arrived. The masking key is rotated to
// continue at the end of this part.
std::optional<MessageReader::Event> MessageReader::read_part(MutableBytes& unread) {
  const std::size_t size = std::min<std::uint64_t>(rest_->payload, unread.size());
  const MutableBytes part = unread.first(size);
  unread = unread.subspan(size);
  if (rest_->masked) mask(part, rest_->key);
  auto& key = rest_->key;
  std::rotate(key.begin(), key.begin() + size % key.size(), key.end());
  rest_->payload -= size;
  gather(part);
  if (is_text_ && !is_text_so_far()) return Fault{close_codes::bad_text};
  if (rest_->payload > 0) return std::nullopt;
  within_ = !rest_->is_final();
  rest_.reset();
  if (within_) return std::nullopt;
  if (is_text_ && checked_ < message_.size()) return Fault{close_codes::bad_text};
  return Message{is_text_, message_};
}

// The capacity doubles as bytes arrive, up to the limit. While it grows, the old and the new memory
// both exist.
void MessageReader::gather(Bytes part) {
  const std::size_t size = message_.size() + part.size();
  if (size > message_.capacity()) message_.reserve(std::min(longest_, 2 * size));
  message_.insert(message_.end(), part.begin(), part.end());
}

bool MessageReader::is_text_so_far() {
  std::string_view rest = text_in(message_).substr(checked_);
  rest.remove_prefix(utf8_length(rest));
  checked_ = message_.size() - rest.size();
  return rest.empty() || begins_character(rest);
}

}  // namespace millrace
