// SPDX-License-Identifier: Apache-2.0
#include "schemas/aligned_message.h"

#include <cstring>

namespace millrace {

Bytes AlignedMessage::of(Bytes message) {
  if (reinterpret_cast<std::uintptr_t>(message.data()) % alignment == 0) return message;
  copy_.resize((message.size() + alignment - 1) / alignment);
  if (!message.empty()) std::memcpy(copy_.data(), message.data(), message.size());
  return std::as_bytes(std::span(copy_)).first(message.size());
}

}  // namespace millrace
