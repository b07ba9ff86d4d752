// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>

#include <cstdint>
#include <memory>
#include <system_error>

#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "base/result.h"

namespace millrace::recording {

// The error of the last system call of this thread: errno.
std::error_code last_error();

// System calls on files, repeated after EINTR and after short writes. An error is the errno of the
// call; after an error some of the bytes may be written.
Result<void, std::error_code> write_all(int descriptor, Bytes bytes);
Result<void, std::error_code> sync_data(int descriptor);  // fdatasync
// Reserves space for [offset, offset + bytes) without growing the file. No error if the file system
// cannot reserve.
Result<void, std::error_code> reserve(int descriptor, std::uint64_t offset, std::uint64_t bytes);
Result<void, std::error_code> truncate(int descriptor, std::uint64_t size);
std::uint64_t file_size(int descriptor);  // throws std::system_error

struct CloseEntries {
  void operator()(DIR* entries) const { ::closedir(entries); }
};
using Entries = std::unique_ptr<DIR, CloseEntries>;

// The entries of a folder in a directory from the first one on: a descriptor of their own, which
// has its own place. Null: see errno. Does not follow links.
Entries entries_of(int directory, const char* folder = ".");

// A file mapped for reading. The view stays valid when the file is renamed or unlinked.
class MappedFile {
 public:
  MappedFile() = default;
  // Maps the first `size` bytes. Throws std::system_error.
  MappedFile(int descriptor, std::uint64_t size);
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  ~MappedFile();

  Bytes bytes() const { return bytes_; }
  // Reads a part from the disk now, so that an error is not a signal at its first use. False: the
  // disk cannot read it. Always true on kernels before 5.14.
  bool load(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  Bytes bytes_{};
};

}  // namespace millrace::recording
