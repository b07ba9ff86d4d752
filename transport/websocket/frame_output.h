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

// The frames to one peer in their order, until they are written. Without I/O. Confined to one
// thread.
class FrameOutput {
 public:
  // A longer message of a server is written from where it lies.
  static constexpr std::size_t most_copied = 32 * 1024;

  // Frames of a client are masked.
  explicit FrameOutput(Role role)
      : keys_(role == Role::client ? std::make_unique<RandomKeys>() : nullptr) {}

  // A message, or a ping. Requires: after a message of more than most_copied bytes, empty().
  void add(Opcode opcode, std::string_view payload);
  // Answers a ping. Behind output that the peer does not take, only the last ping is answered.
  void pong(std::string_view payload);
  // The last frame: nothing is added afterwards.
  void close(std::uint16_t code, std::string_view reason);

  bool empty() const { return frames_.empty() && long_.empty(); }
  using Buffers = std::array<boost::asio::const_buffer, 2>;
  Buffers unwritten() const;
  // The first `size` of these bytes were taken. False if the others have to wait.
  bool written(std::size_t size);
  void drop();

 private:
  void append(std::string& to, Opcode opcode, std::string_view payload);

  const std::unique_ptr<RandomKeys> keys_;
  std::string frames_;     // the first of them is written in part
  std::string_view long_;  // the payload of the last of them
  std::string replies_;    // behind both: a pong, a close
  bool waits_ = false;     // the peer did not take all that was there
  bool closed_ = false;
};

}  // namespace millrace
