// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/file_descriptor.h"
#include "transport/access/resume_keys.h"

namespace millrace {
namespace {

constexpr std::size_t largest_key_file = 64 << 10;

// True if people who may not know the key can read or write it.
bool is_open_to_others(const struct stat& status) {
  const auto others = status.st_mode & 077;
  return others != 0 && !(others == S_IRGRP && status.st_uid == 0);
}

std::string octal(mode_t mode) {
  std::string digits = "0000";
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, mode >>= 3)
    *digit = static_cast<char>('0' + (mode & 7));
  return digits;
}

std::string unreadable(int error) { return std::string("cannot be read: ") + std::strerror(error); }

}  // namespace

// The rights are those of the opened file, and not of its name: another file may take the name.
Result<ResumeKeys, std::string> ResumeKeys::read(const std::string& path) {
  // Not blocked by a pipe.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return unreadable(errno);
  if (!S_ISREG(status.st_mode)) return std::string("is not a regular file");
  if (is_open_to_others(status))
    return "has mode " + octal(status.st_mode) +
           ", so that others can read or write the key; must have 0600, or 0640 and belong to root";
  std::string text;
  std::array<char, 4096> piece;
  while (text.size() <= largest_key_file) {
    const auto size = ::read(file.get(), piece.data(), piece.size());
    if (size < 0) return unreadable(errno);
    if (size == 0) return parse(text);
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
  return std::string("is larger than 64 KiB");
}

}  // namespace millrace
