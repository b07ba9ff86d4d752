// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace millrace {

// The Castagnoli checksum in the variant of iSCSI and ext4: crc32c("123456789") = e3069283. Pure.
std::uint32_t crc32c(Bytes bytes);

}  // namespace millrace
