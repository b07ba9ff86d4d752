// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace {

// The value of a member of a JSON object as it was written, for a reader who must not change a
// digit of it; empty where there is none. A name with an escape in it is not found. Pure. Requires:
// `object` is a JSON object.
std::string_view member_text(std::string_view object, std::string_view name);

}  // namespace millrace
