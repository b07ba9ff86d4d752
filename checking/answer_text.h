// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/answer.h"

namespace millrace::checking {

// Texts of answers and messages in a report.

// As a client receives it.
std::string text_of(const Answer& answer);

// The part of a text from `begin` on that is shown.
std::string shown(const std::string& text, std::size_t begin = 0);

// The same part of both texts. If one of them is long, this is around the first byte that differs.
std::pair<std::string, std::string> shown(const std::string& one, const std::string& other);

}  // namespace millrace::checking
