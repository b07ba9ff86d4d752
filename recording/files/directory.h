// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace millrace::recording {

// A recording file of a directory: `0000000017.mcap` has the number 17.
using FileNumber = std::uint64_t;

// A directory of recording files, held by its descriptor: a directory that is replaced by a link
// later has no effect. All files are opened in it by their number, with O_NOFOLLOW. No name from a
// client is ever part of a path.
//
// Besides recording files it has: `lock` (held by the writer), `removed` (numbers of streams that
// no reader returns), `next` (the number of the next stream). Confined to one thread. Functions
// without another comment throw std::system_error.
class Directory {
 public:
  enum class For {
    reading,
    changing,  // by a command: of files that exist
    writing,   // by the service
  };

  // Opens the directory. The mode and the content of a directory that exists stay as they are, as
  // its name may be mistyped. For changing, it must belong to this user and have a recording file,
  // a temporary one, or `lock`. For writing, it must belong to this user; it is made, with mode
  // 0700, if it does not exist. Without a recording file, it must have no files of others, and only
  // this user must have access, unless it is the root of a file system. The error is one line that
  // names the path. For writing, a fault of the disk is a std::system_error instead.
  static Result<Directory, std::string> open(const std::string& path, For use);

  const std::string& path() const { return path_; }
  // The permissions: 0700 if only this user has access.
  unsigned mode() const;

  // Takes the lock of the writer, held until unlock_writing(). False: another process has it.
  bool lock_for_writing();
  void unlock_writing() { lock_ = FileDescriptor(); }
  // True if a process has that lock.
  bool has_writer() const;
  // Held while sealed files are replaced, so that two processes do not do it at the same time.
  // Waits for the other process.
  FileDescriptor lock_for_maintenance() const;
  // Does not wait: not open if another process has it.
  FileDescriptor try_lock_for_maintenance() const;
  // True if a process has that lock.
  bool has_maintainer() const;

  // The numbers of all recording files, ascending. Other files are ignored.
  std::vector<FileNumber> list() const;
  static std::string file_name(FileNumber number);

  // Size and times of the file, without opening it; nullopt once it was deleted.
  std::optional<struct stat> facts(FileNumber number) const;
  bool exists(FileNumber number) const { return facts(number).has_value(); }

  // A new recording file (0600). Error: EEXIST if the number is taken, or why it cannot be made.
  Result<FileDescriptor, std::error_code> create(FileNumber number) const;
  // Error: ELOOP for a link, EINVAL for anything else that is not a file.
  Result<FileDescriptor, std::error_code> open_to_read(FileNumber number) const;
  Result<FileDescriptor, std::error_code> open_to_repair(FileNumber number) const;
  // A temporary file beside the recording file, which replace() renames over it.
  Result<FileDescriptor, std::error_code> create_temporary(FileNumber number) const;
  Result<void, std::error_code> replace(FileNumber number) const;
  void remove_temporary(FileNumber number) const;  // if there is one
  // The names of all temporary files: of recording files, and of `removed`.
  std::vector<std::string> temporaries() const;
  // Removes the temporary files that killed processes left, and returns their number. They are
  // never needed, and can have frames of streams that are gone. Leaves the temporary file of the
  // newest recording file alone while a process has the lock of the writer: it may be recovering
  // that file. Requires: lock_for_maintenance.
  std::size_t remove_temporaries() const;
  // True if recordings are in this directory, or were.
  bool has_lock() const;
  // Removes the catalog that earlier versions made: it can have names of streams that are gone.
  // Readers ignore it. Returns a line for each file that stays.
  std::vector<std::string> remove_catalog() const;
  // The same for the indexes of these recordings that training keeps in the folder `.millrace`.
  std::vector<std::string> remove_indexes() const;
  // Needs no lock: a rewrite at the same time fails, and does not bring the file back, because it
  // first makes its temporary file, and then checks that the file exists.
  Result<void, std::error_code> remove(FileNumber number) const;
  // Syncs the directory: names of files are then on the disk.
  Result<void, std::error_code> sync() const;

  // Free bytes of the file system for this user.
  std::uint64_t free_bytes() const;

  // The streams that were removed. Readers leave them out. Throws also if the file is damaged.
  std::set<std::uint64_t> removed() const;
  // Adds numbers, and syncs the file. Two processes may do it at the same time.
  void add_removed(const std::set<std::uint64_t>& streams) const;

  // The number that keep_next_stream() kept, also if all recording files were deleted since; 1
  // before the first. Throws also if the file is damaged.
  std::uint64_t next_stream() const;
  // Not synced: after a loss of power the number may be an older one.
  Result<void, std::error_code> keep_next_stream(std::uint64_t number) const;

 private:
  Directory() = default;
  std::string why_not_for(For use) const;

  std::vector<FileNumber> list(std::string_view suffix) const;
  bool has_new_removed() const;
  bool remove_new_removed() const;

  std::string path_;
  FileDescriptor directory_, lock_;
};

// True if the error is a fault of the disk, and not of the configuration: it may go by itself.
bool is_disk_fault(std::error_code why);

}  // namespace millrace::recording
