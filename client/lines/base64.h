// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace millrace {

// Bytes as base64, with padding.
std::string base64(std::string_view bytes);

}  // namespace millrace
