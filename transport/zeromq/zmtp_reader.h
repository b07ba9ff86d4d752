// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "transport/zeromq/message.h"

namespace millrace {

// The greeting of the service: ZMTP 3.1, mechanism NULL.
std::array<char, 64> zmtp_greeting();
// The body of the READY command of a ROUTER.
std::string_view zmtp_ready();
// The body of a PING with the TTL `silence`: after this time without any byte from us, the peer may
// close the connection.
std::string zmtp_ping(std::chrono::milliseconds silence);

// Reads ZMTP 3 (ZeroMQ's RFC 23) with the mechanism NULL, as a ROUTER receives it: a greeting, a
// READY command, then messages and commands. The bytes may arrive in pieces of any size.
//
// Stores at most one incomplete element; its memory grows as its bytes arrive. The limits are
// checked against the length that an element declares. Messages of several parts are not stored.
//
// Confined to one thread.
class ZmtpReader {
 public:
  // Bytes of greeting and READY together.
  static constexpr std::size_t max_handshake = 4 * 1024;
  // Bytes of a routing id; the limit of RFC 23.
  static constexpr std::size_t max_name = 255;

  enum class Found : std::uint8_t {
    nothing,   // all bytes were read, and more are needed
    greeting,  // the peer uses ZMTP 3 and NULL
    ready,     // the handshake is complete: see name()
    message,   // a message of one part: see take_message()
    parts,     // the end of a message of several parts
    ping,      // a PING: see context()
    endless,   // a message of several parts exceeds the limit of a message by 256 KiB
    wrong,     // not ZMTP, or beyond a limit
  };

  // `max_message`: the longest message, in bytes.
  explicit ZmtpReader(std::size_t max_message) : max_message_(max_message) {}

  // Removes bytes from the front of `bytes` up to the end of the next element, and returns the
  // element. Throws std::bad_alloc. Must not be called again after `endless`, `wrong` or an
  // exception.
  Found next(Bytes& bytes);

  const std::string& name() const { return name_; }  // the peer's routing id; may be empty
  // The peer knows PING, which ZMTP 3.0 does not have. Requires: `greeting` was returned.
  bool knows_ping() const { return knows_ping_; }
  // The fault, for the log. Requires: `wrong` was returned.
  std::string_view fault() const { return fault_; }
  ZeromqMessage take_message() { return std::move(message_); }
  std::string_view context() const { return context_; }  // valid until the next call of next()

  // Sets the longest message, from the next one on.
  void set_max_message(std::size_t bytes) { max_message_ = bytes; }
  // The bytes read so far end within a message or command.
  bool is_within() const { return !partial_.empty() || skipped_ > 0 || in_parts_; }

 private:
  enum class State : std::uint8_t { greeting, handshake, traffic };
  struct Frame;

  void append_partial(Bytes bytes, std::size_t element);
  std::optional<std::size_t> size_of_next(Bytes known);
  bool may_be_greeting(Bytes bytes);
  bool is_allowed(const Frame& frame);
  Found read_element(Bytes element);
  Found read_greeting(Bytes greeting);
  Found read_frame(Bytes element);
  Found read_ready(std::string_view body);
  Found wrong(std::string_view fault);
  Found read_command(std::string_view body);
  bool read_property(std::string_view& properties);
  Found begin_part(const Frame& frame);
  Found end_part();
  bool is_dropped(const Frame& frame) const;

  std::size_t max_message_;
  State state_ = State::greeting;
  std::vector<std::byte> partial_;  // the beginning of an element
  bool is_dealer_ = false;          // or another socket type that is compatible with ROUTER
  bool knows_ping_ = false;
  std::string_view fault_;  // a literal
  std::string name_, context_;
  ZeromqMessage message_;

  // State of a message of several parts.
  bool in_parts_ = false, last_part_ = false;
  std::uint64_t skipped_ = 0;  // missing bytes of the current part
  std::uint64_t parts_size_ = 0;
};

}  // namespace millrace
