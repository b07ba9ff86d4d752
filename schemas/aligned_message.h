// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace millrace {

// Aligns a message, so that FlatBuffers can read its scalars: a payload may begin at any address,
// and the verifier checks only offsets in the buffer. Keeps its memory from message to message.
// Confined to one thread.
class AlignedMessage {
 public:
  static constexpr std::size_t alignment = 8;

  // `message` itself if it is aligned, otherwise a copy that is valid until the next call.
  Bytes of(Bytes message);

 private:
  std::vector<std::uint64_t> copy_;
};

}  // namespace millrace
