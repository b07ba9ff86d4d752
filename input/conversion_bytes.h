// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/frame_type.h"
#include "input/client_format.h"

namespace millrace {

// A bound of the bytes that the InputConverter of one stream allocates.
std::size_t conversion_bytes(const ClientFormat& from, const FrameType& to);

// The largest of these bounds over all formats that clients of the pipeline may send.
std::size_t most_conversion_bytes(const FrameType& to);

}  // namespace millrace
