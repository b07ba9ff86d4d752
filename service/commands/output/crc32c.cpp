// SPDX-License-Identifier: Apache-2.0
#include "service/commands/output/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>

namespace millrace {

std::uint32_t crc32c(Bytes bytes) {
  constexpr std::size_t most = 1 << 30;  // the library takes an int
  // The library does not invert the initial and the final value.
  std::uint32_t crc = 0xffffffff;
  while (!bytes.empty()) {
    const Bytes part = bytes.first(std::min(bytes.size(), most));
    // The library does not write to the buffer, although its parameter is not const.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    crc = ::crc32_iscsi(data, static_cast<int>(part.size()), crc);
    bytes = bytes.subspan(part.size());
  }
  return ~crc;
}

}  // namespace millrace
