// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace millrace::recording {

// A segment file of a directory: `0000000017.mcap` has the number 17.
using FileNumber = std::uint64_t;

// A directory of segment files, held by its descriptor: a directory that is replaced by a link
// later has no effect. All files are opened in it by their number, with O_NOFOLLOW. No name from a
// client is ever part of a path.
//
// Besides segment files it has: `lock` (held by the writer), `removed` (numbers of streams that no
// reader returns), `catalog.sqlite` (a cache). Confined to one thread. Functions without another
// comment throw std::system_error.
class Directory {
 public:
  enum class For { reading, writing };

  // Opens the directory. For writing, it is made if it does not exist, it must belong to this user,
  // and its mode is set to 0700. The error is one line that names the path: it is a link, is not a
  // directory, belongs to another user, cannot be read or written.
  static Result<Directory, std::string> open(const std::string& path, For use);

  const std::string& path() const { return path_; }

  // Takes the lock of the writer, held until destruction. False: another process has it.
  bool lock_for_writing();
  // True if a process has that lock.
  bool has_writer() const;
  // Held while sealed files are replaced or deleted, so that two processes do not do it at the same
  // time. Waits for the other process.
  FileDescriptor lock_for_maintenance() const;
  // True if a process has that lock.
  bool has_maintainer() const;

  // The numbers of all segment files, ascending. Other files are ignored.
  std::vector<FileNumber> list() const;
  static std::string file_name(FileNumber number);

  // A new segment file (0600). Error: EEXIST if the number is taken, or why it cannot be made.
  Result<FileDescriptor, std::error_code> create(FileNumber number) const;
  // Error: ELOOP for a link, EINVAL for anything else that is not a file.
  Result<FileDescriptor, std::error_code> open_to_read(FileNumber number) const;
  Result<FileDescriptor, std::error_code> open_to_repair(FileNumber number) const;
  // A temporary file beside the segment file, which replace() renames over it.
  Result<FileDescriptor, std::error_code> create_temporary(FileNumber number) const;
  Result<void, std::error_code> replace(FileNumber number) const;
  void remove_temporary(FileNumber number) const;  // if there is one
  Result<void, std::error_code> remove(FileNumber number) const;
  // Syncs the directory: names of files are then on the disk.
  Result<void, std::error_code> sync() const;

  // Free bytes of the file system for this user.
  std::uint64_t free_bytes() const;

  // The streams that were removed. Readers leave them out. Throws also if the file is damaged.
  std::set<std::uint64_t> removed() const;
  // Adds numbers, and syncs the file. Two processes may do it at the same time.
  void add_removed(const std::set<std::uint64_t>& streams) const;

 private:
  Directory() = default;

  std::string path_;
  FileDescriptor directory_, lock_;
};

}  // namespace millrace::recording
