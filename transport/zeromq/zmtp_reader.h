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

// The greeting of a service: ZMTP 3.1, mechanism NULL.
std::array<char, 64> zmtp_greeting();
// The body of our READY command, as a ROUTER.
std::string_view zmtp_ready();
// The body of a PING: after `silence` without any byte from us, the peer may give us up.
std::string zmtp_ping(std::chrono::milliseconds silence);

// Reads ZMTP 3 (ZeroMQ's RFC 23) with the mechanism NULL, as a ROUTER receives it: a greeting, a
// READY command, then messages of one part and commands. The bytes may come in pieces of any size.
//
// Memory: at most one unfinished element, which grows as its bytes arrive. The limits hold for the
// length that an element declares. The parts of a message of several parts are not kept.
//
// Confined to one thread.
class ZmtpReader {
 public:
  // Greeting and READY together.
  static constexpr std::size_t max_handshake = 4 * 1024;
  // RFC 23 allows this many.
  static constexpr std::size_t max_name = 255;

  enum class Found : std::uint8_t {
    nothing,   // all bytes were taken, and more are needed
    greeting,  // the peer speaks ZMTP 3 and NULL
    ready,     // the handshake is complete: name()
    message,   // take_message()
    parts,     // a message of several parts has ended
    ping,      // context()
    endless,   // a message of several parts is 256 KiB longer than a message may be
    wrong,     // not ZMTP, or beyond a limit
  };

  // `max_message`: bytes of a message.
  explicit ZmtpReader(std::size_t max_message) : max_message_(max_message) {}

  // Takes bytes from the front of `bytes` up to the end of the next element. After `endless` and
  // `wrong` it is not called again. Throws std::bad_alloc, and is not called again either.
  Found next(Bytes& bytes);

  const std::string& name() const { return name_; }  // the peer's routing id; may be empty
  ZeromqMessage take_message() { return std::move(message_); }
  std::string_view context() const { return context_; }  // valid until the next call of next()

  // From now on messages may have this many bytes.
  void set_max_message(std::size_t bytes) { max_message_ = bytes; }
  // The bytes that were taken end within a message or command.
  bool is_within() const { return !kept_.empty() || skipped_ > 0 || in_parts_; }

 private:
  enum class State : std::uint8_t { greeting, handshake, traffic };
  struct Frame;

  void keep(Bytes bytes, std::size_t element);
  std::optional<std::size_t> size_of_next(Bytes known) const;
  bool is_allowed(const Frame& frame) const;
  Found take(Bytes element);
  Found take_greeting(Bytes greeting);
  Found take_frame(Bytes element);
  Found take_ready(std::string_view body);
  Found take_command(std::string_view body);
  bool take_property(std::string_view& properties);
  Found begin_part(const Frame& frame);
  Found end_part();
  bool is_dropped(const Frame& frame) const;

  std::size_t max_message_;
  State state_ = State::greeting;
  std::vector<std::byte> kept_;  // the beginning of an element
  bool is_dealer_ = false;       // or another type that a ROUTER may talk to
  std::string name_, context_;
  ZeromqMessage message_;

  // Of a message of several parts.
  bool in_parts_ = false, last_part_ = false;
  std::uint64_t skipped_ = 0;  // bytes of the present part that are still to come
  std::uint64_t parts_size_ = 0;
};

}  // namespace millrace
