// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace::training {

// For the error about a file or folder that is missing: a hint, if the path is an address such as
// s3://, or if its folder has an entry whose name seems to be the same in another Unicode form, as
// macOS and Linux write names with accents. Empty: neither is so.
std::string missing_file_hint(const std::string& path);

}  // namespace millrace::training
