// SPDX-License-Identifier: Apache-2.0
#include "service/commands/output/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>

namespace millrace {

std::uint32_t crc32c(Bytes bytes) {
  constexpr std::size_t most = 1 << 30;  // the library counts in an int
  // It inverts neither the value that it begins with nor the one that it ends with.
  std::uint32_t crc = 0xffffffff;
  while (!bytes.empty()) {
    const Bytes part = bytes.first(std::min(bytes.size(), most));
    // It does not write to the buffer, whatever its type says.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    crc = ::crc32_iscsi(data, static_cast<int>(part.size()), crc);
    bytes = bytes.subspan(part.size());
  }
  return ~crc;
}

}  // namespace millrace
