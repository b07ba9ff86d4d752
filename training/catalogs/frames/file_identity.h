// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

namespace millrace::training {

// Equal identities: the same file, and it was not changed.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;  // nanoseconds, by the clock of the file system
  bool operator==(const FileIdentity&) const = default;
};

inline FileIdentity identity_from(const struct stat& facts) {
  return {.device = facts.st_dev,
          .inode = facts.st_ino,
          .bytes = static_cast<std::uint64_t>(facts.st_size),
          .changed = std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec};
}

// nullopt: there is no such file.
inline std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return identity_from(facts);
}

}  // namespace millrace::training
