// SPDX-License-Identifier: Apache-2.0
#include "service/watch/memory_use.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace millrace {

namespace {

// Files are named by strings: if an allocation fails in operator/ of std::filesystem::path,
// libstdc++ 12 frees memory twice.
using File = std::string;

// Where a version keeps what; names that it does not need are empty.
struct Version {
  std::string_view mount;
  std::array<std::string_view, 2> limits;  // whichever is least
  std::string_view usage;
  std::array<std::string_view, 3> cache;
};
constexpr Version first{.mount = "sys/fs/cgroup/memory",
                        .limits = {"memory.limit_in_bytes", ""},
                        .usage = "memory.usage_in_bytes",
                        .cache = {"total_inactive_file", "total_active_file", ""}};
// Above memory.high a group is slowed down until it hardly moves.
constexpr Version second{.mount = "sys/fs/cgroup",
                         .limits = {"memory.max", "memory.high"},
                         .usage = "memory.current",
                         .cache = {"inactive_file", "active_file", "slab_reclaimable"}};

// Not every file is there on every machine. One that is there and cannot be opened is another
// matter: without it a limit would seem to be gone.
std::ifstream opened(const File& file) {
  errno = 0;
  std::ifstream in(file);
  if (!in && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
    throw std::system_error(errno, std::generic_category(), file);
  return in;
}

// The only number in a file; nothing where there is none ("max").
std::optional<std::uint64_t> number_in(const File& file) {
  std::ifstream in = opened(file);
  std::uint64_t number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

// The sum of the numbers behind some words, each the first of its line; nothing where there is
// none.
std::optional<std::uint64_t> sum_behind(std::span<const std::string_view> words, const File& file) {
  std::ifstream in = opened(file);
  std::optional<std::uint64_t> sum;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string name;
    std::uint64_t number = 0;
    if (fields >> name && std::ranges::find(words, name) != words.end() && fields >> number)
      sum = sum.value_or(0) + number;
  }
  return sum;
}

// The least of `least` and what is free in one group. Pages of files are as good as free: they are
// taken back before anybody is killed.
std::uint64_t least_free(std::uint64_t least, const File& group, const Version& version) {
  std::optional<std::uint64_t> limit;
  for (const std::string_view name : version.limits)
    if (const auto one = name.empty() ? std::nullopt : number_in(group + "/" + std::string(name)))
      limit = std::min(limit.value_or(*one), *one);
  const auto usage = number_in(group + "/" + std::string(version.usage));
  if (!limit || !usage || *limit - std::min(*limit, *usage) >= least) return least;
  const std::uint64_t cache = sum_behind(version.cache, group + "/memory.stat").value_or(0);
  const std::uint64_t used = *usage - std::min(*usage, cache);
  return std::min(least, *limit - std::min(*limit, used));
}

// The same for a group and those that it is in. In a container its name may be the host's, and what
// is there the container's own alone.
std::uint64_t least_free_around(std::uint64_t least, std::string group, const File& mount,
                                const Version& version) {
  if (!group.starts_with('/')) group.insert(0, 1, '/');
  for (;;) {
    while (group.ends_with('/')) group.pop_back();
    least = least_free(least, mount + group, version);
    if (group.empty()) return least;
    group.resize(group.rfind('/'));
  }
}

// The lines are number:controllers:group; that of version 2 names no controllers.
std::uint64_t least_free_in_groups(std::uint64_t least, const File& root) {
  std::ifstream in = opened(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t controllers = line.find(':') + 1;
    const std::size_t group = line.find(':', controllers) + 1;
    if (group == 0) continue;
    const std::string listed = "," + line.substr(controllers, group - controllers - 1) + ",";
    const bool unified = listed == ",,";
    if (!unified && listed.find(",memory,") == std::string::npos) continue;
    const Version& version = unified ? second : first;
    least = least_free_around(least, line.substr(group), root + "/" + std::string(version.mount),
                              version);
  }
  return least;
}

// Of /proc/self/statm, in bytes.
struct Pages {
  std::uint64_t all = 0, resident = 0, data = 0;
};

std::optional<Pages> pages_of(const File& root) {
  std::ifstream in = opened(root + "/proc/self/statm");
  std::array<std::uint64_t, 6> fields{};
  for (std::uint64_t& field : fields)
    if (!(in >> field)) return std::nullopt;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return Pages{.all = fields[0] * page, .resident = fields[1] * page, .data = fields[5] * page};
}

// The least of `least` and what RLIMIT_AS and RLIMIT_DATA leave. A line is a name, the soft limit,
// the hard limit and a unit, between blanks.
std::uint64_t least_free_of_limits(std::uint64_t least, const Pages& pages, const File& root) {
  constexpr std::string_view address_space = "Max address space ", data = "Max data size ";
  std::ifstream in = opened(root + "/proc/self/limits");
  for (std::string line; std::getline(in, line);) {
    const bool of_all = line.starts_with(address_space);
    if (!of_all && !line.starts_with(data)) continue;
    std::istringstream behind(line.substr((of_all ? address_space : data).size()));
    const std::uint64_t used = of_all ? pages.all : pages.data;
    std::uint64_t limit = 0;
    if (behind >> limit) least = std::min(least, limit - std::min(limit, used));
  }
  return least;
}

}  // namespace

std::optional<MemoryUse> memory_use(const std::string& root) {
  constexpr std::string_view word = "MemAvailable:";
  constexpr auto unknown = std::numeric_limits<std::uint64_t>::max();
  const auto pages = pages_of(root);
  if (!pages) return std::nullopt;
  const auto available = sum_behind({&word, 1}, root + "/proc/meminfo");
  std::uint64_t free = least_free_in_groups(available ? *available * 1024 : unknown, root);
  free = least_free_of_limits(free, *pages, root);
  if (free == unknown) return std::nullopt;
  return MemoryUse{.used = pages->resident, .most = pages->resident + free};
}

}  // namespace millrace
