// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "training/catalogs/index/index.h"

namespace millrace::training {

// nullopt: there is no such file.
std::optional<FileState> state_of(const std::string& path);
// Throws std::system_error.
FileState state_of(int descriptor);

// Which files are compared with an index.
enum class Compared { all, watched_only };

// True if the files are those of the index: none was changed, added or removed. Uses several
// threads if there are many files.
bool is_current(const Index& index, const std::string& base, Compared compared);

// The path of a file of the index. An empty base is the current directory.
std::string path_in(const std::string& base, std::string_view path);

}  // namespace millrace::training
