// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace {

// The value of a member of a JSON object exactly as it was written, every digit included. Empty if
// there is no such member. Does not find a name that is written with escapes. Pure. Requires:
// `object` is a JSON object.
std::string_view member_text(std::string_view object, std::string_view name);

}  // namespace millrace
