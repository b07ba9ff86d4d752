// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/ring.h"
#include "transport/zeromq/message.h"

namespace millrace {

// The queue of unwritten ZMTP frames to one peer. The queue itself has no limit: its owner must ask
// is_full() first. Confined to one thread.
class ZmtpOutput {
 public:
  static constexpr std::size_t full = std::size_t{64} << 10;  // bytes

  // These three add a frame. They throw std::bad_alloc, and then have added nothing.
  void add_raw(std::string_view bytes);  // the greeting
  void add_command(std::string_view body);
  void add_message(ZeromqMessage message);

  bool empty() const { return frames_.empty(); }
  // At least `full` bytes are unwritten: the peer must read first.
  bool is_full() const { return weight_ >= full; }
  // Bytes from the beginning of the connection to the end of the last added message.
  std::uint64_t end_of_messages() const { return end_of_messages_; }

  enum class Written : std::uint8_t { all, some, failed };
  // Writes as many bytes as the socket accepts now. `some`: wait until it is writable.
  Written write(int socket);

  void clear();

 private:
  struct Frame {
    std::uint8_t flags = 0;
    std::uint8_t head = 0;  // bytes; 0: without a head
    ZeromqMessage body;

    std::size_t size() const { return head + body.bytes().size(); }
  };

  void add(std::uint8_t flags, std::size_t head, ZeromqMessage body);
  void written(std::size_t bytes);

  Ring<Frame> frames_;
  std::size_t offset_ = 0;   // bytes of the first frame that were written
  std::size_t weight_ = 0;   // bytes of memory
  std::uint64_t added_ = 0;  // bytes since the beginning of the connection
  std::uint64_t end_of_messages_ = 0;
};

}  // namespace millrace
