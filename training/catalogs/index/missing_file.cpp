// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/missing_file.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace millrace::training {
namespace {

namespace fs = std::filesystem;

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

std::string ascii_of(std::string_view name) {
  std::string ascii;
  std::ranges::copy_if(name, std::back_inserter(ascii), is_ascii);
  return ascii;
}

// True if the characters of `part` are in `whole`, in order.
bool is_in(std::string_view part, std::string_view whole) {
  std::size_t found = 0;
  for (const char c : whole) found += found < part.size() && part[found] == c ? 1 : 0;
  return found == part.size();
}

// A composed letter (NFC) is not ASCII. Decomposed (NFD), it is an ASCII letter and an accent.
bool seem_equal(std::string_view one, std::string_view other) {
  if (one == other || std::ranges::all_of(one, is_ascii) || std::ranges::all_of(other, is_ascii))
    return false;
  std::string part = ascii_of(one), whole = ascii_of(other);
  if (part.size() > whole.size()) std::swap(part, whole);
  return part.size() < whole.size() && is_in(part, whole);
}

}  // namespace

std::string missing_file_hint(const std::string& path) {
  if (path.find("://") != path.npos)
    return "; only local files are read: mount the store, or write a catalog in Python "
           "(docs/training.md)";
  const fs::path file(path);
  const std::string name = file.filename().native();
  std::error_code error;
  if (std::ranges::all_of(name, is_ascii) || fs::exists(fs::symlink_status(file, error))) return {};
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (seem_equal(name, entry->path().filename().native()))
      return "; the folder has this name in another Unicode form (NFC or NFD): rename the file";
  return {};
}

}  // namespace millrace::training
