// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/frames/checked_mapping.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_descriptor.h"

namespace millrace::training {
namespace {

constexpr std::int64_t period = 10;  // milliseconds between looks at a file

ReadError read_error(const std::string& path, const std::string& why) {
  return {.fault = DataFault::read, .message = path + ": " + why};
}

ReadError cannot_be_read(const std::string& path) {
  return read_error(path, std::string("cannot be read: ") + std::strerror(errno));
}

std::int64_t coarse_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

Result<CheckedMapping, ReadError> CheckedMapping::open(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) return cannot_be_read(path);
  if (S_ISDIR(facts.st_mode)) return read_error(path, "is a folder");
  try {
    recording::MappedFile mapped(file.get(), static_cast<std::uint64_t>(facts.st_size));
    return CheckedMapping(path, std::move(mapped), facts.st_dev, facts.st_ino);
  } catch (const std::system_error& error) {
    return read_error(path, std::string("cannot be mapped: ") + error.what());
  }
}

CheckedMapping::CheckedMapping(std::string path, recording::MappedFile mapped, dev_t device,
                               ino_t inode)
    : path_(std::move(path)),
      absolute_path_(std::filesystem::absolute(path_).string()),
      mapped_(std::move(mapped)),
      device_(device),
      inode_(inode),
      checked_(coarse_milliseconds()) {}

Result<void, ReadError> CheckedMapping::check() {
  const std::int64_t now = coarse_milliseconds();
  if (now < checked_ + period) return {};
  auto found = look();
  if (found) checked_ = now;
  return found;
}

Result<void, ReadError> CheckedMapping::look() const {
  struct stat facts {};
  if (::stat(absolute_path_.c_str(), &facts) != 0) return cannot_be_read(path_);
  if (facts.st_ino != inode_ || facts.st_dev != device_)
    return read_error(path_, "was replaced while it was read");
  if (static_cast<std::uint64_t>(facts.st_size) < mapped_.bytes().size())
    return ReadError{.fault = DataFault::length,
                     .message = path_ + ": was cut while it was read, to " +
                                std::to_string(facts.st_size) + " bytes"};
  return {};
}

}  // namespace millrace::training
