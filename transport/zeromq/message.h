// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/bytes.h"

namespace millrace {

// Owns one part of a ZeroMQ message, in the memory of libzmq. A move does not copy the bytes. Their
// address may be unaligned (schemas/aligned_message.h). May be moved to another thread; confined to
// one thread at a time.
class ZeromqMessage {
 public:
  ZeromqMessage();  // empty
  // Throws std::bad_alloc.
  static ZeromqMessage copy_of(Bytes bytes);
  ZeromqMessage(ZeromqMessage&& other) noexcept;
  ZeromqMessage& operator=(ZeromqMessage&& other) noexcept;
  ~ZeromqMessage();

  Bytes bytes() const;
  std::string_view text() const { return text_in(bytes()); }

  // The zmq_msg_t, for code that includes zmq.h.
  void* handle() { return message_.data(); }

 private:
  alignas(void*) mutable std::array<std::byte, 64> message_;
};

}  // namespace millrace
