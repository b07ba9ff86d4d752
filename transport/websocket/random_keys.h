// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "transport/websocket/frame_head.h"

namespace millrace {

// Unpredictable keys to mask a client's frames (RFC 6455, 5.3). One system call yields 64 keys.
// Confined to one thread.
class RandomKeys {
 public:
  // Throws std::system_error if the kernel returns no random bytes.
  MaskingKey next();

 private:
  std::array<MaskingKey, 64> keys_;
  std::size_t used_ = keys_.size();
};

}  // namespace millrace
