// SPDX-License-Identifier: Apache-2.0
#include "recording/format/checksums.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>

namespace millrace::recording {

std::uint32_t crc32(Bytes bytes, std::uint32_t before) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  return ::crc32_gzip_refl(before, data, bytes.size());
}

std::uint32_t crc32c(Bytes bytes, std::uint32_t before) {
  constexpr std::size_t most = 1 << 30;  // the library takes an int
  // The library does not invert the initial and the final value.
  std::uint32_t crc = ~before;
  while (!bytes.empty()) {
    const Bytes part = bytes.first(std::min(bytes.size(), most));
    // The library does not write to the buffer, although its parameter is not const.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    crc = ::crc32_iscsi(data, static_cast<int>(part.size()), crc);
    bytes = bytes.subspan(part.size());
  }
  return ~crc;
}

}  // namespace millrace::recording
