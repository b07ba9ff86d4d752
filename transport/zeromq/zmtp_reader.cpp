// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq/zmtp_reader.h"

#include <algorithm>
#include <utility>

#include "transport/zeromq/zmtp_head.h"

namespace millrace {
namespace {

using namespace std::literals;
using namespace zmtp;

constexpr std::size_t greeting_size = 64;
constexpr std::size_t version_at = 10, mechanism_at = 12, mechanism_size = 20;
constexpr std::string_view mechanism = "NULL";

// The longest context of a PING (RFC 37), in bytes.
constexpr std::size_t ttl_size = 2, max_context = 16;

// Bytes by which a message of several parts may exceed the longest message.
constexpr std::size_t beyond_a_message = std::size_t{256} << 10;

// Larger memory is freed when an element is complete.
constexpr std::size_t kept_memory = 1024;

std::uint64_t big_endian(Bytes bytes) {
  std::uint64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

bool can_talk_to_router(std::string_view type) {
  return type == "DEALER" || type == "REQ" || type == "ROUTER";
}

// Removes `size` bytes from the front of `from`; nullopt if there are fewer.
std::optional<std::string_view> read_front(std::string_view& from, std::uint64_t size) {
  if (size > from.size()) return std::nullopt;
  const std::string_view front = from.substr(0, static_cast<std::size_t>(size));
  from.remove_prefix(front.size());
  return front;
}

// Removes a string that follows its length, a number of `width` bytes.
std::optional<std::string_view> read_string(std::string_view& from, std::size_t width) {
  const auto length = read_front(from, width);
  if (!length) return std::nullopt;
  return read_front(from, big_endian(bytes_in(*length)));
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](char c) { return c | 0x20; }, [](char c) { return c | 0x20; });
}

}  // namespace

// The head of a frame, and the length that it declares.
struct ZmtpReader::Frame {
  std::uint8_t flags = 0;
  std::size_t head = 0;
  std::uint64_t size = 0;

  bool is_part() const { return (flags & is_command) == 0; }
  bool has_more() const { return (flags & more) != 0; }

  // Nullopt if `bytes` does not contain the whole head.
  static std::optional<Frame> of(Bytes bytes) {
    if (bytes.size() < short_head) return std::nullopt;
    const auto flags = static_cast<std::uint8_t>(bytes[0]);
    const std::size_t head = (flags & is_long) != 0 ? long_head : short_head;
    if (bytes.size() < head) return std::nullopt;
    return Frame{flags, head, big_endian(bytes.subspan(1, head - 1))};
  }
};

std::array<char, 64> zmtp_greeting() {
  std::array<char, greeting_size> greeting{};
  constexpr std::string_view begin = "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL"sv;
  std::ranges::copy(begin, greeting.begin());
  return greeting;
}

std::string_view zmtp_ready() { return "\5READY\13Socket-Type\0\0\0\6ROUTER\10Identity\0\0\0\0"sv; }

std::string zmtp_ping(std::chrono::milliseconds silence) {
  const auto tenths = static_cast<std::uint16_t>(silence.count() / 100);  // tenths of a second
  return "\4PING"s + static_cast<char>(tenths >> 8) + static_cast<char>(tenths & 0xff);
}

ZmtpReader::Found ZmtpReader::next(Bytes& bytes) {
  for (;;) {
    if (in_parts_) {
      const std::size_t count = std::min<std::uint64_t>(skipped_, bytes.size());
      bytes = bytes.subspan(count);
      skipped_ -= count;
      if (skipped_ > 0) return Found::nothing;
      if (std::exchange(last_part_, false)) return end_part();
    }
    const Bytes known = partial_.empty() ? bytes : Bytes(partial_);
    const auto size = size_of_next(known);
    if (!size) return Found::wrong;
    if (known.size() < *size) {
      const std::size_t wanted = *size - partial_.size();
      const Bytes part = bytes.first(std::min(wanted, bytes.size()));
      if (part.empty()) return Found::nothing;
      append_partial(part, *size);
      bytes = bytes.subspan(part.size());
      continue;
    }
    const Found found = read_element(known.first(*size));
    if (partial_.empty()) bytes = bytes.subspan(*size);
    partial_.clear();
    if (partial_.capacity() > kept_memory) std::vector<std::byte>().swap(partial_);
    if (found != Found::nothing) return found;
  }
}

// Memory doubles as bytes arrive, but not beyond the element: a vector by itself would exceed it.
void ZmtpReader::append_partial(Bytes bytes, std::size_t element) {
  const std::size_t needed = partial_.size() + bytes.size();
  if (partial_.capacity() < needed)
    partial_.reserve(std::min(std::max(needed, 2 * partial_.capacity()), element));
  partial_.insert(partial_.end(), bytes.begin(), bytes.end());
}

// The size of the next element, as far as `known` determines it: its head, or all of it. Nullopt if
// `known` cannot begin an element.
std::optional<std::size_t> ZmtpReader::size_of_next(Bytes known) {
  if (state_ == State::greeting) {
    if (!may_be_greeting(known)) return std::nullopt;
    return greeting_size;
  }
  const auto frame = Frame::of(known);
  if (!frame) {
    const bool longer = !known.empty() && (static_cast<std::uint8_t>(known[0]) & is_long) != 0;
    return longer ? long_head : short_head;
  }
  if (!is_allowed(*frame)) return std::nullopt;
  return frame->head + (is_dropped(*frame) ? 0 : static_cast<std::size_t>(frame->size));
}

// False if `bytes` cannot begin a greeting: a signature and a version of at least 3.
bool ZmtpReader::may_be_greeting(Bytes bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  fault_ = "the bytes are no greeting of ZMTP 3";
  if (!bytes.empty() && byte(0) != 0xff) return false;
  if (bytes.size() >= version_at && (byte(version_at - 1) & 1) != 1) return false;
  fault_ = "the version of ZMTP is older than 3";
  return bytes.size() <= version_at || byte(version_at) >= 3;
}

bool ZmtpReader::is_allowed(const Frame& frame) {
  fault_ = "a frame is invalid";
  if ((frame.flags & ~(more | is_long | is_command)) != 0) return false;
  if (state_ == State::traffic && frame.is_part()) {
    fault_ = "a message is too long";
    return frame.size <= max_message_;
  }
  if (frame.is_part() || frame.has_more()) return false;
  fault_ = "a command is too long";
  return frame.size <= max_handshake - greeting_size - frame.head;
}

ZmtpReader::Found ZmtpReader::wrong(std::string_view fault) {
  fault_ = fault;
  return Found::wrong;
}

// True for a part of a message of several parts. Only the head of such a frame is an element.
bool ZmtpReader::is_dropped(const Frame& frame) const {
  return frame.is_part() && (in_parts_ || frame.has_more());
}

ZmtpReader::Found ZmtpReader::read_element(Bytes element) {
  return state_ == State::greeting ? read_greeting(element) : read_frame(element);
}

ZmtpReader::Found ZmtpReader::read_greeting(Bytes greeting) {
  const std::string_view its = text_in(greeting).substr(mechanism_at, mechanism_size);
  if (!its.starts_with(mechanism) || its.find_first_not_of('\0', mechanism.size()) != its.npos)
    return wrong("the security mechanism is not NULL");
  const auto version = [&](std::size_t at) { return static_cast<std::uint8_t>(greeting[at]); };
  knows_ping_ = version(version_at) > 3 || version(version_at + 1) >= 1;
  state_ = State::handshake;
  return Found::greeting;
}

ZmtpReader::Found ZmtpReader::read_frame(Bytes element) {
  const Frame frame = *Frame::of(element);
  if (is_dropped(frame)) return begin_part(frame);
  const Bytes body = element.subspan(frame.head);
  if (state_ == State::handshake) return read_ready(text_in(body));
  if (!frame.is_part()) return read_command(text_in(body));
  message_ = ZeromqMessage::copy_of(body);
  return Found::message;
}

ZmtpReader::Found ZmtpReader::read_ready(std::string_view body) {
  if (read_string(body, 1) != "READY") return wrong("the first command is not READY");
  while (!body.empty())
    if (!read_property(body)) return Found::wrong;
  if (!is_dealer_) return wrong("the type of the peer's socket is not DEALER, REQ or ROUTER");
  state_ = State::traffic;
  return Found::ready;
}

// False if the property is malformed or its value is invalid. A routing id that begins with 0 is
// reserved.
bool ZmtpReader::read_property(std::string_view& properties) {
  fault_ = "the READY command is malformed";
  const auto name = read_string(properties, 1);
  if (!name) return false;
  const auto value = read_string(properties, 4);
  if (!value) return false;
  if (equal_ignoring_case(*name, "Socket-Type")) {
    is_dealer_ = can_talk_to_router(*value);
  } else if (equal_ignoring_case(*name, "Identity")) {
    fault_ = "the routing id is longer than 255 bytes or begins with 0";
    if (value->size() > max_name || value->starts_with('\0')) return false;
    name_ = *value;
  }
  return true;
}

// Unknown commands are ignored.
ZmtpReader::Found ZmtpReader::read_command(std::string_view body) {
  const auto name = read_string(body, 1);
  if (!name) return wrong("a command is malformed");
  if (name == "ERROR") return wrong("the peer has sent the command ERROR");
  if (name != "PING") return Found::nothing;
  if (body.size() < ttl_size || body.size() > ttl_size + max_context)
    return wrong("a PING is malformed");
  context_ = body.substr(ttl_size);
  return Found::ping;
}

ZmtpReader::Found ZmtpReader::begin_part(const Frame& frame) {
  in_parts_ = true;
  last_part_ = !frame.has_more();
  skipped_ = frame.size;
  parts_size_ += frame.head + frame.size;
  return parts_size_ > max_message_ + beyond_a_message ? Found::endless : Found::nothing;
}

ZmtpReader::Found ZmtpReader::end_part() {
  in_parts_ = false;
  parts_size_ = 0;
  return Found::parts;
}

}  // namespace millrace
