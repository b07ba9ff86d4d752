// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "transport/websocket/message_reader.h"
#include "transport/websocket/random_keys.h"

namespace millrace {

// The queue of unwritten frames to one peer, in order. Does no I/O. Confined to one thread.
class FrameOutput {
 public:
  // A longer message of a server is not copied.
  static constexpr std::size_t most_copied = 32 * 1024;

  // Frames of a client are masked.
  explicit FrameOutput(Role role)
      : keys_(role == Role::client ? std::make_unique<RandomKeys>() : nullptr) {}

  // Adds a message or a ping. After a message of more than most_copied bytes: the bytes of
  // `payload` stay valid, and nothing more is added, until empty().
  void add(Opcode opcode, std::string_view payload);
  // Answers a ping. While the socket is full, only the last ping is answered.
  void pong(std::string_view payload);
  // Adds the last frame. Frames added afterwards are dropped. At most 120 bytes of `reason` are
  // sent.
  void close(std::uint16_t code, std::string_view reason);

  bool empty() const { return frames_.empty() && long_.empty(); }
  using Buffers = std::array<boost::asio::const_buffer, 2>;
  Buffers unwritten() const;
  // The socket accepted the first `size` bytes of unwritten(). False if others remain.
  bool written(std::size_t size);
  // Drops all unwritten frames.
  void drop();

 private:
  void append(std::string& to, Opcode opcode, std::string_view payload);

  const std::unique_ptr<RandomKeys> keys_;
  std::string frames_;     // the first frame may be written in part
  std::string_view long_;  // the payload of the last frame in frames_, not copied
  std::string replies_;    // a pong and a close, after frames_ and long_
  bool blocked_ = false;   // the socket did not accept everything
  bool closed_ = false;
};

}  // namespace millrace
