// SPDX-License-Identifier: Apache-2.0
#include "recording/files/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "recording/files/file.h"
#include "recording/files/file_locks.h"
#include "schemas/text.h"

namespace millrace::recording {
namespace {

[[noreturn]] void fail(const std::string& path) { throw std::system_error(last_error(), path); }

// A path that ends with a slash would follow a link in spite of O_NOFOLLOW.
std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string error_line(const std::string& path, const std::string& what) {
  return path + ": " + what;
}

// Why the directory cannot be opened: called after the failed call.
std::string why_not(const std::string& path) {
  const std::error_code error = last_error();
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) == 0) {
    if (S_ISLNK(facts.st_mode)) return error_line(path, "is a link; name the directory itself");
    if (!S_ISDIR(facts.st_mode)) return error_line(path, "is not a directory");
  }
  return error_line(path, error.message());
}

// The same for writing; throws if the disk is at fault.
std::string why_not_writable(const std::string& path) {
  if (is_disk_fault(last_error())) fail(path);
  return why_not(path);
}

struct stat facts_of(const std::string& path, int directory) {
  struct stat facts {};
  if (::fstat(directory, &facts) != 0) fail(path);
  return facts;
}

// The error if this user must not write recordings into the directory; empty if they may.
std::string check_writable(const std::string& path, int directory) {
  const struct stat facts = facts_of(path, directory);
  if (facts.st_uid != ::geteuid())
    return error_line(path, "belongs to another user (uid " + std::to_string(facts.st_uid) + ")");
  if (::faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) == 0) return "";
  if (is_disk_fault(last_error())) fail(path);
  return error_line(path, last_error().message());
}

std::optional<FileNumber> number_of(std::string_view name) {
  FileNumber number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  if (number == 0 || Directory::file_name(number) != name) return std::nullopt;
  return number;
}

constexpr std::string_view temporary_suffix = ".new";
constexpr std::array<const char*, 4> catalog_names{"catalog.sqlite", "catalog.sqlite-journal",
                                                   "catalog.sqlite-wal", "catalog.sqlite-shm"};

std::string temporary_name(FileNumber number) {
  return Directory::file_name(number).append(temporary_suffix);
}

// The root of a volume has the mode that the mount gave it.
bool is_file_system(const std::string& path, int directory) {
  struct stat parent {};
  if (::fstatat(directory, "..", &parent, 0) != 0) fail(path);
  return parent.st_dev != facts_of(path, directory).st_dev;
}

// True for names of files that a directory of recordings has besides recording files.
bool is_ours(std::string_view name) {
  constexpr std::array<std::string_view, 7> names{".",       "..",          "lost+found", "lock",
                                                  "removed", "removed.new", "next"};
  if (std::ranges::find(names, name) != names.end()) return true;
  if (std::ranges::find(catalog_names, name) != catalog_names.end()) return true;
  if (!name.ends_with(temporary_suffix)) return false;
  name.remove_suffix(temporary_suffix.size());
  return number_of(name).has_value();
}

// The name of a file that no directory of recordings has; empty without such a file.
std::string other_file(const std::string& path, int directory) {
  const auto entries = entries_of(directory);
  if (!entries) fail(path);
  errno = 0;
  while (const dirent* entry = ::readdir(entries.get()))
    if (!is_ours(entry->d_name)) return entry->d_name;
  if (errno != 0) fail(path);
  return "";
}

// A file that is opened must be a regular one; a pipe would block the open.
Result<FileDescriptor, std::error_code> open_regular(int directory, FileNumber number, int flags) {
  FileDescriptor file(::openat(directory, Directory::file_name(number).c_str(),
                               flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) return last_error();
  if (!S_ISREG(facts.st_mode)) return std::make_error_code(std::errc::invalid_argument);
  return file;
}

Result<FileDescriptor, std::error_code> create_new(int directory, const std::string& name) {
  FileDescriptor file(
      ::openat(directory, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return last_error();
  return file;
}

Result<void, std::error_code> checked(int result) {
  if (result != 0) return last_error();
  return {};
}

}  // namespace

bool is_disk_fault(std::error_code why) {
  switch (why.value()) {
    case EACCES:
    case EPERM:
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
    case ENOLCK:
    case ENOSYS:
    case EOPNOTSUPP: return false;
    default: return true;
  }
}

Result<Directory, std::string> Directory::open(const std::string& path, For use) {
  Directory directory;
  directory.path_ = without_slashes(path);
  const char* name = directory.path_.c_str();
  if (use == For::writing && ::mkdir(name, 0700) != 0 && errno != EEXIST)
    return why_not_writable(directory.path_);
  directory.directory_ =
      FileDescriptor(::open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.directory_)
    return use == For::writing ? why_not_writable(directory.path_) : why_not(directory.path_);
  std::string error = use == For::reading ? "" : directory.why_not_for(use);
  if (!error.empty()) return error;
  return directory;
}

// Why files must not be made or changed in it; empty if they may.
std::string Directory::why_not_for(For use) const {
  std::string error = check_writable(path_, directory_.get());
  if (!error.empty() || !list().empty()) return error;
  if (use == For::changing)
    return temporaries().empty() && !has_lock() ? error_line(path_, "has no recording file")
                                                : error;
  if (const std::string other = other_file(path_, directory_.get()); !other.empty())
    return error_line(path_, "has no recording file, but another file, " + shell_quoted(other) +
                                 ": name another directory");
  const bool is_private = (mode() & 077) == 0;
  if (is_private || is_file_system(path_, directory_.get())) return error;
  std::array<char, 8> octal;
  std::snprintf(octal.data(), octal.size(), "%04o", mode());
  return error_line(path_, "has mode " + std::string(octal.data()) +
                               " and no recording file: run chmod 700 " + shell_quoted(path_) +
                               ", or name another directory");
}

unsigned Directory::mode() const { return facts_of(path_, directory_.get()).st_mode & 07777; }

bool Directory::lock_for_writing() {
  lock_ = open_lock_file(directory_.get(), path_);
  if (try_lock(lock_.get(), path_, LockedPart::writer)) return true;
  lock_ = FileDescriptor();
  return false;
}

bool Directory::has_writer() const {
  return is_locked(directory_.get(), path_, LockedPart::writer);
}

bool Directory::has_maintainer() const {
  return is_locked(directory_.get(), path_, LockedPart::maintenance);
}

FileDescriptor Directory::lock_for_maintenance() const {
  FileDescriptor file = open_lock_file(directory_.get(), path_);
  wait_for_lock(file.get(), path_, LockedPart::maintenance);
  return file;
}

FileDescriptor Directory::try_lock_for_maintenance() const {
  FileDescriptor file = open_lock_file(directory_.get(), path_);
  if (try_lock(file.get(), path_, LockedPart::maintenance)) return file;
  return FileDescriptor();
}

std::vector<FileNumber> Directory::list() const { return list(""); }

// The numbers of the files whose names are those of recording files with this suffix.
std::vector<FileNumber> Directory::list(std::string_view suffix) const {
  const auto entries = entries_of(directory_.get());
  if (!entries) fail(path_);
  std::vector<FileNumber> numbers;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(entries.get());
    if (!entry) break;
    std::string_view name = entry->d_name;
    if (!name.ends_with(suffix)) continue;
    name.remove_suffix(suffix.size());
    if (const auto number = number_of(name)) numbers.push_back(*number);
  }
  if (errno != 0) fail(path_);
  std::ranges::sort(numbers);
  return numbers;
}

std::string Directory::file_name(FileNumber number) {
  std::array<char, 32> name;
  const int size = std::snprintf(name.data(), name.size(), "%010llu.mcap",
                                 static_cast<unsigned long long>(number));
  return {name.data(), static_cast<std::size_t>(size)};
}

Result<FileDescriptor, std::error_code> Directory::create(FileNumber number) const {
  return create_new(directory_.get(), file_name(number));
}

std::optional<struct stat> Directory::facts(FileNumber number) const {
  struct stat facts {};
  const std::string name = file_name(number);
  if (::fstatat(directory_.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) return facts;
  if (errno == ENOENT) return std::nullopt;
  throw std::system_error(last_error(), name);
}

Result<FileDescriptor, std::error_code> Directory::open_to_read(FileNumber number) const {
  return open_regular(directory_.get(), number, O_RDONLY);
}

Result<FileDescriptor, std::error_code> Directory::open_to_repair(FileNumber number) const {
  return open_regular(directory_.get(), number, O_RDWR);
}

Result<FileDescriptor, std::error_code> Directory::create_temporary(FileNumber number) const {
  const std::string name = temporary_name(number);
  // A process that was killed may have left it.
  if (::unlinkat(directory_.get(), name.c_str(), 0) != 0 && errno != ENOENT) return last_error();
  return create_new(directory_.get(), name);
}

Result<void, std::error_code> Directory::replace(FileNumber number) const {
  return checked(::renameat(directory_.get(), temporary_name(number).c_str(), directory_.get(),
                            file_name(number).c_str()));
}

void Directory::remove_temporary(FileNumber number) const {
  ::unlinkat(directory_.get(), temporary_name(number).c_str(), 0);
}

std::vector<std::string> Directory::temporaries() const {
  std::vector<std::string> names;
  for (const FileNumber number : list(temporary_suffix)) names.push_back(temporary_name(number));
  if (has_new_removed()) names.emplace_back("removed.new");
  return names;
}

std::size_t Directory::remove_temporaries() const {
  std::size_t removed = remove_new_removed() ? 1 : 0;
  const std::vector<FileNumber> temporary = list(temporary_suffix);
  if (temporary.empty()) return removed;
  // Held until the end: so no writer begins to recover the newest file meanwhile.
  const FileDescriptor lock = open_lock_file(directory_.get(), path_);
  const bool written = !try_lock(lock.get(), path_, LockedPart::writer);
  const std::vector<FileNumber> files = list();
  for (const FileNumber number : temporary) {
    if (written && !files.empty() && number == files.back()) continue;
    const std::string name = temporary_name(number);
    if (::unlinkat(directory_.get(), name.c_str(), 0) == 0)
      ++removed;
    else if (errno != ENOENT)
      fail(path_ + "/" + name);
  }
  return removed;
}

bool Directory::has_lock() const {
  return ::faccessat(directory_.get(), "lock", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> Directory::remove_catalog() const {
  std::vector<std::string> errors;
  for (const char* name : catalog_names)
    if (::unlinkat(directory_.get(), name, 0) != 0 && errno != ENOENT)
      errors.push_back(error_line(path_ + "/" + name, last_error().message()));
  return errors;
}

Result<void, std::error_code> Directory::remove(FileNumber number) const {
  const std::string name = file_name(number);
  const auto removed = checked(::unlinkat(directory_.get(), name.c_str(), 0));
  if (!removed) return removed;
  // A rewrite cannot rename its temporary file any more. It may have done so between the two calls.
  remove_temporary(number);
  ::unlinkat(directory_.get(), name.c_str(), 0);
  return removed;
}

Result<void, std::error_code> Directory::sync() const { return checked(::fsync(directory_.get())); }

std::uint64_t Directory::free_bytes() const {
  struct statvfs facts {};
  if (::fstatvfs(directory_.get(), &facts) != 0) fail(path_);
  return std::uint64_t{facts.f_bavail} * facts.f_frsize;
}

}  // namespace millrace::recording
