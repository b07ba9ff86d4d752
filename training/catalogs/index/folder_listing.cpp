// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/folder_listing.h"

#include <algorithm>
#include <filesystem>

#include "input/audio_file.h"
#include "training/catalogs/index/file_states.h"

namespace millrace::training {
namespace {

namespace fs = std::filesystem;

// Subfolders in each other. Circular links are deeper; the system resolves 40 of them.
constexpr std::size_t most_depth = 32;

class Listing {
 public:
  explicit Listing(const std::string& base) : base_(base) {}

  Result<FolderListing, std::string> list() {
    if (!add({}, 0)) return circular_ + ": the folder contains itself by a link";
    std::ranges::sort(found_.files);
    return std::move(found_);
  }

 private:
  bool add(const std::string& folder, std::size_t depth) {
    const std::string path = path_in(base_, folder);
    if (depth > most_depth) {
      circular_ = path;
      return false;
    }
    const auto state = state_of(path);
    std::vector<std::string> below;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      const std::string name = entry.path().filename().native();
      if (name.starts_with('.')) continue;
      const std::string relative = folder.empty() ? name : folder + "/" + name;
      // A broken link is listed, so that it is reported. Pipes and devices are not.
      std::error_code error;
      const fs::file_status status = entry.status(error);
      if (fs::is_directory(status))
        below.push_back(relative);
      else if (is_audio_name(name) && (fs::is_regular_file(status) || !fs::exists(status)))
        found_.files.push_back(relative);
    }
    found_.folders.emplace_back(folder, state.value_or(FileState{}));
    return std::ranges::all_of(below, [&](const std::string& one) { return add(one, depth + 1); });
  }

  const std::string& base_;
  FolderListing found_;
  std::string circular_;
};

}  // namespace

Result<FolderListing, std::string> list_folder(const std::string& path) {
  return Listing(path).list();
}

std::string_view without_extension(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  return dot == std::string_view::npos || dot <= name ? path : path.substr(0, dot);
}

}  // namespace millrace::training
