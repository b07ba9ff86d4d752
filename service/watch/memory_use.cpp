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

// Paths are strings: if an allocation fails in operator/ of std::filesystem::path, libstdc++ 12
// frees memory twice.
using File = std::string;

// The file names and fields of one version of control groups. Unused names are empty.
struct Version {
  std::string_view mount;
  std::array<std::string_view, 2> limits;  // the least applies
  std::string_view usage;
  std::array<std::string_view, 3> cache;
};
constexpr Version version_1{.mount = "sys/fs/cgroup/memory",
                            .limits = {"memory.limit_in_bytes", ""},
                            .usage = "memory.usage_in_bytes",
                            .cache = {"total_inactive_file", "total_active_file", ""}};
// memory.high is a limit too: above it the kernel slows the group down until it almost stops.
constexpr Version version_2{.mount = "sys/fs/cgroup",
                            .limits = {"memory.max", "memory.high"},
                            .usage = "memory.current",
                            .cache = {"inactive_file", "active_file", "slab_reclaimable"}};

// A file may be missing, as not every machine has each. But if one cannot be opened because
// descriptors or memory are short, this throws: its limit would otherwise appear to be absent.
std::ifstream open_file(const File& file) {
  errno = 0;
  std::ifstream in(file);
  if (!in && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
    throw std::system_error(errno, std::generic_category(), file);
  return in;
}

// The only number in a file; nullopt if it has no number ("max").
std::optional<std::uint64_t> number_in(const File& file) {
  std::ifstream in = open_file(file);
  std::uint64_t number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

// The sum of the numbers in lines that begin with one of `words`; nullopt if there is no such line.
std::optional<std::uint64_t> sum_of_fields(std::span<const std::string_view> words,
                                           const File& file) {
  std::ifstream in = open_file(file);
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

// The lesser of `least` and the free memory of one group. Cached pages of files count as free: the
// kernel reclaims them before it kills a process.
std::uint64_t least_free(std::uint64_t least, const File& group, const Version& version) {
  std::optional<std::uint64_t> limit;
  for (const std::string_view name : version.limits)
    if (const auto one = name.empty() ? std::nullopt : number_in(group + "/" + std::string(name)))
      limit = std::min(limit.value_or(*one), *one);
  const auto usage = number_in(group + "/" + std::string(version.usage));
  if (!limit || !usage || *limit - std::min(*limit, *usage) >= least) return least;
  const std::uint64_t cache = sum_of_fields(version.cache, group + "/memory.stat").value_or(0);
  const std::uint64_t used = *usage - std::min(*usage, cache);
  return std::min(least, *limit - std::min(*limit, used));
}

// least_free() for a group and all its parents. In a container, the name of the group may be that
// on the host, of which only the root exists in the container.
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

// least_free() for all groups of the process. Lines of the file are number:controllers:group; the
// line of version 2 has no controllers.
std::uint64_t least_free_in_groups(std::uint64_t least, const File& root) {
  std::ifstream in = open_file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t controllers = line.find(':') + 1;
    const std::size_t group = line.find(':', controllers) + 1;
    if (group == 0) continue;
    const std::string listed = "," + line.substr(controllers, group - controllers - 1) + ",";
    const bool unified = listed == ",,";
    if (!unified && listed.find(",memory,") == std::string::npos) continue;
    const Version& version = unified ? version_2 : version_1;
    least = least_free_around(least, line.substr(group), root + "/" + std::string(version.mount),
                              version);
  }
  return least;
}

// Fields of /proc/self/statm, in bytes.
struct Pages {
  std::uint64_t all = 0, resident = 0, data = 0;
};

std::optional<Pages> pages_of(const File& root) {
  std::ifstream in = open_file(root + "/proc/self/statm");
  std::array<std::uint64_t, 6> fields{};
  for (std::uint64_t& field : fields)
    if (!(in >> field)) return std::nullopt;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return Pages{.all = fields[0] * page, .resident = fields[1] * page, .data = fields[5] * page};
}

// The lesser of `least` and the rest of RLIMIT_AS and RLIMIT_DATA. A line of the file has the name,
// the soft limit, the hard limit and the unit, separated by blanks.
std::uint64_t least_free_of_limits(std::uint64_t least, const Pages& pages, const File& root) {
  constexpr std::string_view address_space = "Max address space ", data = "Max data size ";
  std::ifstream in = open_file(root + "/proc/self/limits");
  for (std::string line; std::getline(in, line);) {
    const bool is_address_space = line.starts_with(address_space);
    if (!is_address_space && !line.starts_with(data)) continue;
    std::istringstream behind(line.substr((is_address_space ? address_space : data).size()));
    const std::uint64_t used = is_address_space ? pages.all : pages.data;
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
  const auto available = sum_of_fields({&word, 1}, root + "/proc/meminfo");
  std::uint64_t free = least_free_in_groups(available ? *available * 1024 : unknown, root);
  free = least_free_of_limits(free, *pages, root);
  if (free == unknown) return std::nullopt;
  return MemoryUse{.used = pages->resident, .limit = pages->resident + free};
}

}  // namespace millrace
