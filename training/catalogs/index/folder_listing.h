// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "training/catalogs/index/index.h"

namespace millrace::training {

// The audio files of a folder and its subfolders.
struct FolderListing {
  std::vector<std::string> files{};  // relative to the folder, sorted by their bytes
  // The folders, relative, with their state before they were listed.
  std::vector<std::pair<std::string, FileState>> folders{};
};

// Lists a folder. Names that begin with a dot are left out. Links are followed. The error is for a
// link to a folder that contains it. Throws std::system_error if a folder cannot be read.
Result<FolderListing, std::string> list_folder(const std::string& path);

// A path without the extension of its name.
std::string_view without_extension(std::string_view path);

}  // namespace millrace::training
