// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "transport/websocket/frame_head.h"

namespace millrace {

// Which end of a WebSocket this is.
enum class Role : std::uint8_t { server, client };

// Reads the messages of a WebSocket (RFC 6455) from bytes as they arrive, and checks every rule of
// the framing. How the bytes are split changes nothing. A message in one frame stays where it was
// read; fragments are gathered in memory of the reader. Limits hold before a byte is kept. Without
// I/O. Confined to one thread.
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
  };
  // The bytes are not the protocol, or a message is too long. Nothing can be read afterwards.
  struct Fault {
    std::uint16_t code;  // to close with: 1002, 1007 or 1009
  };
  using Event = std::variant<Message, Ping, Pong, Close, Fault>;

  // `role` is that of this end. Messages have at most `longest` bytes. An incomplete binary message
  // whose only frame has at most `in_place` bytes, head included, is left to the caller until it is
  // complete.
  MessageReader(Role role, std::size_t longest, std::size_t in_place)
      : role_(role), longest_(longest), in_place_(in_place) {}

  // Removes bytes from the front of `unread` until they are a message or a control frame. Nullopt:
  // more bytes are needed behind those that it leaves, which are less than a frame. The bytes of an
  // event are valid until the next call, and while the memory of `unread` is.
  std::optional<Event> next(MutableBytes& unread);

  // The bytes of the last event are no longer needed: frees their memory if it is above 8 KiB.
  // next() does so too.
  void forget_message();

  // True from the first bytes of a gathered message to its last ones.
  bool within_message() const { return within_; }
  std::size_t memory() const { return message_.capacity(); }  // of its own

 private:
  std::optional<Fault> fault_of(const FrameHead& head) const;
  bool stays_in_place(const FrameHead& head) const;
  Event take_frame(const FrameHead& head, MutableBytes& unread);
  std::optional<Event> take_part(MutableBytes& unread);
  void gather(Bytes part);
  bool is_text_so_far();

  const Role role_;
  const std::size_t longest_;
  const std::size_t in_place_;
  std::optional<FrameHead> rest_;   // of a frame whose payload is incomplete; `payload` bytes of it
  bool within_ = false;             // a message that is gathered
  bool is_text_ = false;            // that message
  std::vector<std::byte> message_;  // its bytes so far, or those of the last event
  std::size_t checked_ = 0;         // of them, as UTF-8
};

}  // namespace millrace
