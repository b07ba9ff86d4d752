// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace millrace {

// A new directory, removed with its content by the destructor.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& parent = "/tmp")
      : path_(parent + "/millrace-XXXXXX") {
    if (!::mkdtemp(path_.data())) throw std::runtime_error("mkdtemp " + path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A file system in memory, if the system has one: for tests that sync a file thousands of times.
inline std::string memory_folder() {
  return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
}

}  // namespace millrace
