// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace millrace {

// A message at an address that its scalars can be read from: FlatBuffers' verifier knows offsets
// in the buffer only, and a payload may begin anywhere. Keeps the copy that it makes where one is
// needed, and its memory for the next. Confined to one thread.
class AlignedMessage {
 public:
  static constexpr std::size_t alignment = 8;

  // `message` itself where it is aligned, else a copy that lives until the next call.
  Bytes of(Bytes message);

 private:
  std::vector<std::uint64_t> copy_;
};

}  // namespace millrace
