// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/index_place.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/time.h"
#include "recording/files/file.h"
#include "training/catalogs/index/file_states.h"

namespace millrace::training {
namespace {

constexpr const char* folder_name = ".millrace";
constexpr const char* part = ".part";                  // extension of temporary files
constexpr std::int64_t abandoned = 3'600'000'000'000;  // age of a temporary file, in nanoseconds
constexpr Duration longest_tick = std::chrono::milliseconds(50);

// The folder of the user's cache; empty if the user has none.
std::string cache_folder() {
  if (const char* cache = ::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return std::string(cache) + "/millrace";
  if (const char* home = ::getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.cache/millrace";
  return {};
}

// A name for an index in the cache, where those of all folders are.
std::string cache_name(const std::string& folder, const std::string& name) {
  std::error_code error;
  const auto canonical = std::filesystem::canonical(folder, error);
  StreamDigest digest;
  digest.add(error ? std::string_view(folder) : std::string_view(canonical.native()));
  digest.add(name);
  char text[32];
  std::snprintf(text, sizeof text, "%016llx.index",
                static_cast<unsigned long long>(digest.value()));
  return text;
}

}  // namespace

IndexPlace::IndexPlace(const std::string& folder, const std::string& name) {
  paths_.push_back(folder + "/" + folder_name + "/" + name);
  if (const std::string cache = cache_folder(); !cache.empty())
    paths_.push_back(cache + "/" + cache_name(folder, name));
}

IndexPlace::~IndexPlace() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

std::vector<Index> IndexPlace::read() const {
  std::vector<Index> found;
  for (const std::string& path : paths_)
    if (auto index = Index::map(path)) found.push_back(std::move(*index));
  return found;
}

bool IndexPlace::begin() {
  for (const std::string& path : paths_)
    if (begin_in(path)) return true;
  return false;
}

bool IndexPlace::begin_in(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return false;
  std::string temporary = path + ".XXXXXX" + part;
  FileDescriptor file(
      ::mkostemps(temporary.data(), static_cast<int>(std::strlen(part)), O_CLOEXEC));
  if (!file) return false;
  ::fchmod(file.get(), 0644);
  file_ = std::move(file);
  temporary_ = std::move(temporary);
  path_ = path;
  begin_tick();
  remove_abandoned();
  return true;
}

// Removes the temporary files of processes that were killed.
void IndexPlace::remove_abandoned() const {
  std::error_code error;
  const auto folder = std::filesystem::path(path_).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto state = state_of(entry.path().native());
    if (entry.path().extension() == part && state && state->changed < now() - abandoned)
      std::filesystem::remove(entry.path(), error);
  }
}

// The time of a file system advances in ticks of some milliseconds. In the next tick, every earlier
// change has an earlier time: also that of the folder in which the folder of the index was made.
void IndexPlace::begin_tick() {
  const std::int64_t begun = now();
  const Time limit = Clock::now() + longest_tick;
  while (now() == begun && Clock::now() < limit) {
  }
}

std::int64_t IndexPlace::now() const {
  ::futimens(file_.get(), nullptr);
  return state_of(file_.get()).changed;
}

// If the disk is full, the catalog works without the file.
std::string IndexPlace::commit(Bytes index) {
  if (!recording::write_all(file_.get(), index) || !recording::sync_data(file_.get()) ||
      ::rename(temporary_.c_str(), path_.c_str()) != 0)
    return {};
  temporary_.clear();
  return path_;
}

}  // namespace millrace::training
