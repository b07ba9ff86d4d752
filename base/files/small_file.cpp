// SPDX-License-Identifier: Apache-2.0
#include "base/files/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/file_descriptor.h"

namespace millrace {
namespace {

std::string unreadable(int error) { return std::string("cannot be read: ") + std::strerror(error); }

// "64 KiB" or "16 MiB".
std::string size_text(std::size_t bytes) {
  return bytes % (1 << 20) == 0 ? std::to_string(bytes >> 20) + " MiB"
                                : std::to_string(bytes >> 10) + " KiB";
}

std::string octal(mode_t mode) {
  std::string digits = "0000";
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, mode >>= 3)
    *digit = static_cast<char>('0' + (mode & 7));
  return digits;
}

// Why the file is no place for a secret: people who may not know it can read or write it.
std::optional<std::string> open_to_others(const struct stat& status) {
  const auto others = status.st_mode & 077;
  if (others == 0 || (others == S_IRGRP && status.st_uid == 0)) return std::nullopt;
  return "has mode " + octal(status.st_mode) +
         ", so that others can read or write the key; must have 0600, or 0640 and belong to root";
}

using Text = Result<std::string, std::string>;
using Refuse = std::optional<std::string> (*)(const struct stat&);

Text wrong(std::string why) { return Text(boost::system::in_place_error, std::move(why)); }

// The rights are those of the opened file, and not of its name: another file may take the name.
Text read(const std::string& path, std::size_t most, Refuse refuse) {
  // Not blocked by a pipe.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return wrong(unreadable(errno));
  if (!S_ISREG(status.st_mode)) return wrong("is not a regular file");
  if (auto why = refuse(status)) return wrong(std::move(*why));
  std::string text;
  std::array<char, 4096> piece;
  while (text.size() <= most) {
    const auto size = ::read(file.get(), piece.data(), piece.size());
    if (size < 0) return wrong(unreadable(errno));
    if (size == 0) return Text(boost::system::in_place_value, std::move(text));
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
  return wrong("is larger than " + size_text(most));
}

}  // namespace

Result<std::string, std::string> read_small_file(const std::string& path, std::size_t most) {
  return read(path, most, [](const struct stat&) { return std::optional<std::string>(); });
}

Result<std::string, std::string> read_secret_file(const std::string& path, std::size_t most) {
  return read(path, most, &open_to_others);
}

}  // namespace millrace
