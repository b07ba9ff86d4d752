// SPDX-License-Identifier: Apache-2.0
// The files with numbers of streams. `removed` has one per line: it is replaced as a whole, so that
// a crash leaves no part of a number. `next` has 20 digits and a newline: each number is written
// over the one before.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>

#include "recording/files/directory.h"
#include "recording/files/file.h"
#include "recording/files/file_locks.h"

namespace millrace::recording {
namespace {

constexpr const char* name = "removed";
constexpr const char* new_name = "removed.new";
constexpr const char* next_name = "next";
constexpr const char* index_folder = ".millrace";  // as in training/catalogs/index/index_place.cpp
constexpr std::size_t next_digits = 20;
using NextLine = std::array<char, next_digits + 2>;  // with the newline, and a zero

[[noreturn]] void fail_removed(const std::string& path, std::error_code error) {
  throw std::system_error(error, path + "/" + name);
}
[[noreturn]] void fail_next(const std::string& path, std::error_code error) {
  throw std::system_error(error, path + "/" + next_name);
}
[[noreturn]] void fail_removed(const std::string& path) { fail_removed(path, last_error()); }

std::string read_all(int file, const std::string& path) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t size = ::read(file, part.data(), part.size());
    if (size == 0) return text;
    if (size > 0)
      text.append(part.data(), static_cast<std::size_t>(size));
    else if (errno != EINTR)
      fail_removed(path);
  }
}

// A number that cannot be read must not make its stream readable again: the file is an error then.
std::set<std::uint64_t> parse(std::string_view text, const std::string& path) {
  std::set<std::uint64_t> numbers;
  for (std::size_t line = 1; !text.empty(); ++line) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || digits == text.size() || *end != '\n')
      throw std::system_error(
          std::make_error_code(std::errc::bad_message),
          path + "/" + name + ": line " + std::to_string(line) + " is not a number with a newline");
    numbers.insert(number);
    text.remove_prefix(digits + 1);
  }
  return numbers;
}

void write_new(int directory, const std::string& path, const std::string& text) {
  if (::unlinkat(directory, new_name, 0) != 0 && errno != ENOENT) fail_removed(path);
  const FileDescriptor file(
      ::openat(directory, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) fail_removed(path);
  auto done = write_all(file.get(), std::as_bytes(std::span(text)));
  if (done) done = sync_data(file.get());
  if (!done) fail_removed(path, done.error());
}

}  // namespace

std::set<std::uint64_t> Directory::removed() const {
  const FileDescriptor file(
      ::openat(directory_.get(), name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return {};
  if (!file) fail_removed(path_);
  return parse(read_all(file.get(), path_), path_);
}

bool Directory::has_new_removed() const {
  return ::faccessat(directory_.get(), new_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// False: there is no such file. Under the lock, no process is writing one.
bool Directory::remove_new_removed() const {
  if (!has_new_removed()) return false;
  const FileDescriptor lock = open_lock_file(directory_.get(), path_);
  wait_for_lock(lock.get(), path_, LockedPart::removed);
  if (::unlinkat(directory_.get(), new_name, 0) == 0) return true;
  if (errno != ENOENT) fail_removed(path_);
  return false;
}

void Directory::add_removed(const std::set<std::uint64_t>& streams) const {
  const FileDescriptor lock = open_lock_file(directory_.get(), path_);
  wait_for_lock(lock.get(), path_, LockedPart::removed);
  std::set<std::uint64_t> all = removed();
  all.insert(streams.begin(), streams.end());
  std::string text;
  for (const std::uint64_t stream : all) (text += std::to_string(stream)) += '\n';
  write_new(directory_.get(), path_, text);
  if (::renameat(directory_.get(), new_name, directory_.get(), name) != 0) fail_removed(path_);
  if (const auto synced = sync(); !synced) fail_removed(path_, synced.error());
}

std::vector<std::string> Directory::remove_indexes() const {
  std::vector<std::string> errors;
  const auto entries = entries_of(directory_.get(), index_folder);
  if (!entries && errno != ENOENT && errno != ENOTDIR)
    errors.push_back(path_ + "/" + index_folder + ": " + last_error().message());
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr)
    if (std::string_view(entry->d_name).starts_with("recordings") &&
        ::unlinkat(::dirfd(entries.get()), entry->d_name, 0) != 0 && errno != ENOENT)
      errors.push_back(path_ + "/" + index_folder + "/" + entry->d_name + ": " +
                       last_error().message());
  return errors;
}

std::uint64_t Directory::next_stream() const {
  const FileDescriptor file(
      ::openat(directory_.get(), next_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return 1;
  NextLine line;
  const ssize_t size = file ? ::pread(file.get(), line.data(), line.size(), 0) : -1;
  if (size < 0) fail_next(path_, last_error());
  if (size == 0) return 1;  // a loss of power after it was made
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + next_digits, number);
  if (size != next_digits + 1 || error != std::errc() || end != line.data() + next_digits ||
      *end != '\n')
    fail_next(path_, std::make_error_code(std::errc::bad_message));
  return number;
}

Result<void, std::error_code> Directory::keep_next_stream(std::uint64_t number) const {
  const FileDescriptor file(::openat(
      directory_.get(), next_name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!file) return last_error();
  NextLine line;
  std::snprintf(line.data(), line.size(), "%020llu\n", static_cast<unsigned long long>(number));
  const ssize_t size = ::pwrite(file.get(), line.data(), next_digits + 1, 0);
  if (size < 0) return last_error();
  if (size != next_digits + 1) return std::make_error_code(std::errc::no_space_on_device);
  return {};
}

}  // namespace millrace::recording
