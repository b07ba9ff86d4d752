// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace millrace::recording {

// Checksums by libisal. `before` is the checksum of the bytes before these, so that
// crc(a + b) = crc(b, crc(a)). Pure.

// The checksum of MCAP: CRC-32 of zlib and gzip. crc32("123456789") = cbf43926.
std::uint32_t crc32(Bytes bytes, std::uint32_t before = 0);
// The Castagnoli checksum. crc32c("123456789") = e3069283.
std::uint32_t crc32c(Bytes bytes, std::uint32_t before = 0);

}  // namespace millrace::recording
