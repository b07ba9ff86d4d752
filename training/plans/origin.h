// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "training/plans/plan_options.h"

namespace millrace::training {

// The first key by which two origins (origin_of()) differ, and its two values, as a part of a
// message: "slots is 64 instead of 32". Empty if the origins are equal.
std::string difference_of(std::string_view expected, std::string_view other);

}  // namespace millrace::training
