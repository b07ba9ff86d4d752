// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "base/result.h"
#include "recording/files/file.h"
#include "training/catalogs/frames/file_identity.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// A file that others may cut, replace or delete while it is read. A read of bytes that it does not
// have any more is an error. All such files of the process keep at most half of the descriptors
// that it may have: others are opened again for each read, and must still be the same file.
//
// Immutable; several threads may read it, each into a block of its own.
class StoredFile {
 public:
  // The bytes that were read last, at least those that were wanted. One for each place of the file
  // that is read forward. Confined to one thread.
  class Block {
   public:
    std::size_t memory() const { return bytes_.capacity(); }
    // For a file that is not read for some time: the bytes may change meanwhile.
    void clear();

   private:
    friend class StoredFile;
    std::uint64_t end() const { return begin_ + bytes_.size(); }
    std::vector<std::byte> bytes_;
    std::uint64_t begin_ = 0;  // in the file
  };

  // Opens the file. The error names it. `mapped`: it is mapped, and read in place. That takes less
  // time, but if others cut the file, or its disk fails, SIGBUS ends the process.
  //
  // Here and in read(), std::runtime_error: the process has too many open files. Without `mapped`,
  // the first call raises its limit as far as possible.
  static Result<StoredFile, ReadError> open(const std::string& path, bool mapped = false);

  StoredFile(StoredFile&& other) noexcept;
  StoredFile& operator=(StoredFile&&) = delete;
  ~StoredFile();

  // In bytes, when it was opened.
  std::uint64_t size() const { return identity_.bytes; }
  // The bytes [begin, begin + count), valid until the next call with this block. Reads more of them
  // if the block is read forward. Requires: they are in the file as it was opened.
  Result<Bytes, ReadError> read(std::uint64_t begin, std::uint64_t count, Block& block) const;
  // Whether the path leads to the same file, and that was not changed.
  bool is_current() const;

 private:
  struct Opened {
    FileDescriptor file;
    FileIdentity identity;
  };

  StoredFile(std::string path, Opened opened, bool mapped);
  static Result<Opened, ReadError> open_file(const std::string& shown, const std::string& path);
  Result<void, ReadError> fill(Block& block, std::uint64_t needed) const;
  Result<void, ReadError> fill(int file, Block& block, std::uint64_t needed) const;

  std::string path_, absolute_path_;
  FileIdentity identity_;
  FileDescriptor file_;  // if it is kept
  std::optional<recording::MappedFile> mapped_;
};

// Throws std::runtime_error if the file could not be opened for this error because the process, or
// the system, has too many open files: then it is no error of the file.
void check_descriptors(const std::string& path, int error);

}  // namespace millrace::training
