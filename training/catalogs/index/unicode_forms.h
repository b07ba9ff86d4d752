// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace::training {

// For the error about a file that is missing: a hint, if its folder has a file whose name seems to
// be the same in another Unicode form, as macOS and Linux write names with accents. Empty: it has
// no such file.
std::string other_form_hint(const std::string& path);

}  // namespace millrace::training
