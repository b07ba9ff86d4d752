// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/bytes.h"

namespace millrace {

// The name of the container whose signature these bytes begin with, such as "WAV", "Ogg" or "WebM".
// Empty: they begin with none. Signatures have four bytes or more, except that of an ID3 tag: a
// bare MPEG frame begins like the sample -1025.
std::string_view container_name(Bytes beginning);

// The bytes that container_name() needs.
inline constexpr std::size_t longest_signature = 12;

}  // namespace millrace
