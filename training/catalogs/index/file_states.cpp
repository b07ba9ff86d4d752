// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/file_states.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <system_error>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "base/quiet_thread.h"

namespace millrace::training {
namespace {

constexpr std::uint64_t checked_by_a_thread = 2000;  // a thread costs as much as some 50 files

FileState state_from(const struct stat& facts) {
  const bool folder = S_ISDIR(facts.st_mode);
  return {.bytes = folder ? 0 : static_cast<std::uint64_t>(facts.st_size),
          .changed = std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec};
}

// The streams [begin, end) of an index. Their paths are looked up from the base, which is shorter
// than from the root.
bool are_current(const Index& index, int base, std::uint64_t begin, std::uint64_t end,
                 const std::atomic<bool>& stop) {
  std::array<char, PATH_MAX> path;  // no allocation: its exception would end the process
  for (std::uint64_t i = begin; i < end && !stop.load(std::memory_order_relaxed); ++i) {
    const IndexedStream stream = index.stream(i);
    if (stream.path.empty()) continue;
    if (stream.path.size() >= path.size()) return false;
    *std::ranges::copy(stream.path, path.begin()).out = '\0';
    struct stat facts {};
    if (::fstatat(base, path.data(), &facts, 0) != 0 || state_from(facts) != stream.file)
      return false;
  }
  return true;
}

bool streams_are_current(const Index& index, int base) {
  const std::uint64_t threads = std::min<std::uint64_t>(
      index.size() / checked_by_a_thread, std::max(1u, std::thread::hardware_concurrency()) - 1);
  const std::uint64_t part = index.size() / (threads + 1) + 1;
  std::atomic<bool> differs = false;
  const auto compare = [&](std::uint64_t number) {
    const std::uint64_t begin = std::min(index.size(), number * part);
    // Relaxed: nothing else is read because of it, and the threads are joined.
    if (!are_current(index, base, begin, std::min(index.size(), begin + part), differs))
      differs.store(true, std::memory_order_relaxed);
  };
  {
    std::vector<std::jthread> others;
    for (std::uint64_t number = 1; number <= threads; ++number)
      others.push_back(quiet_thread("catalog", [&compare, number] { compare(number); }));
    compare(0);
  }
  return !differs.load(std::memory_order_relaxed);
}

}  // namespace

std::optional<FileState> state_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return state_from(facts);
}

FileState state_of(int descriptor) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0)
    throw std::system_error(errno, std::generic_category(), "fstat");
  return state_from(facts);
}

bool is_current(const Index& index, const std::string& base, Compared compared) {
  if (!index.settled()) return false;
  for (std::size_t i = 0; i < index.watched(); ++i) {
    const WatchedFile watched = index.watched(i);
    if (state_of(path_in(base, watched.path)) != watched.file) return false;
  }
  if (compared == Compared::watched_only) return true;
  const FileDescriptor folder(::open(base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return folder && streams_are_current(index, folder.get());
}

std::string path_in(const std::string& base, std::string_view path) {
  if (path.starts_with('/') || base.empty()) return std::string(path);
  if (path.empty()) return base;
  return base + (base.ends_with('/') ? "" : "/") + std::string(path);
}

}  // namespace millrace::training
