// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "transport/websocket/frame_head.h"

namespace millrace {

// The keys that mask a client's frames: nobody can foresee them (RFC 6455, 5.3). One system call
// gives 64 of them. Confined to one thread.
class RandomKeys {
 public:
  // Throws std::system_error if the kernel gives no random bytes.
  MaskingKey next();

 private:
  std::array<MaskingKey, 64> keys_;
  std::size_t used_ = keys_.size();
};

}  // namespace millrace
