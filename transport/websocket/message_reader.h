// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "transport/websocket/frame_head.h"

namespace millrace {

// The end of a WebSocket.
enum class Role : std::uint8_t { server, client };

// Reads the messages of a WebSocket (RFC 6455) from bytes as they arrive, and checks every rule of
// the framing. The result does not depend on how the bytes are split. A message in one frame is not
// copied; fragments are gathered in the reader's memory. Limits are checked before bytes are
// stored. Does no I/O. Confined to one thread.
class MessageReader {
 public:
  struct Message {
    bool is_text = false;
    Bytes bytes;
  };
  struct Ping {
    Bytes payload;
  };
  struct Pong {};
  struct Close {
    std::uint16_t code = 1005;  // 1005: the peer gave none
    std::string_view reason{};  // UTF-8
  };
  // The bytes violate the protocol, or a message is too long. Nothing can be read afterwards.
  struct Fault {
    std::uint16_t code;  // the close code to send: 1002, 1007 or 1009
  };
  using Event = std::variant<Message, Ping, Pong, Close, Fault>;

  // `role` is our end. Messages have at most `longest` bytes. An incomplete binary message in one
  // frame of at most `in_place` bytes, head included, stays in the caller's memory until it is
  // complete.
  MessageReader(Role role, std::size_t longest, std::size_t in_place)
      : role_(role), longest_(longest), in_place_(in_place) {}

  // Reads one message or control frame, and removes its bytes from the front of `unread`. Nullopt:
  // more bytes are needed; less than a frame remains in `unread`, and new bytes must follow after
  // it. The bytes of an event are valid until the next call, and only while the memory of `unread`
  // is valid.
  std::optional<Event> next(MutableBytes& unread);

  // Call it when the bytes of the last event are no longer needed: frees their memory if it is
  // above 8 KiB. next() does so too.
  void forget_message();

  // True while a message is gathered, from its first byte to its last one.
  bool within_message() const { return within_; }
  std::size_t memory() const { return message_.capacity(); }  // bytes of the reader's memory

 private:
  std::optional<Fault> fault_of(const FrameHead& head) const;
  bool stays_in_place(const FrameHead& head) const;
  Event read_frame(const FrameHead& head, MutableBytes& unread);
  std::optional<Event> read_part(MutableBytes& unread);
  void gather(Bytes part);
  bool is_text_so_far();

  const Role role_;
  const std::size_t longest_;
  const std::size_t in_place_;
  std::optional<FrameHead> rest_;   // an incomplete frame; `payload` is its missing bytes
  bool within_ = false;             // a message is being gathered
  bool is_text_ = false;            // the kind of that message
  std::vector<std::byte> message_;  // its bytes so far, or those of the last event
  std::size_t checked_ = 0;         // bytes of message_ that are checked as UTF-8
};

}  // namespace millrace
