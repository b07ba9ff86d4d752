// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "base/result.h"
#include "recording/files/file.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// A file that others may cut, replace or delete while it is read. A read of bytes that it does not
// have any more is an error; a file that was replaced or deleted is read to its end. Confined to
// one thread.
class StoredFile {
 public:
  // The bytes that were read last, at least those that were wanted. One for each place of the file
  // that is read forward.
  class Block {
   public:
    std::size_t memory() const { return bytes_.capacity(); }

   private:
    friend class StoredFile;
    std::uint64_t end() const { return begin_ + bytes_.size(); }
    std::vector<std::byte> bytes_;
    std::uint64_t begin_ = 0;  // in the file
  };

  // Opens the file, and raises the process's limit on descriptors as far as possible. The error
  // names the file. `mapped`: it is mapped, and read in place. That takes two thirds of the time,
  // but if others cut the file, or its disk fails, SIGBUS ends the process.
  static Result<StoredFile, ReadError> open(const std::string& path, bool mapped = false);

  // In bytes, when it was opened.
  std::uint64_t size() const { return size_; }
  // The bytes [begin, begin + count), valid until the next call with this block. Reads more of them
  // if the block is read forward. Requires: they are in the file as it was opened.
  Result<Bytes, ReadError> read(std::uint64_t begin, std::uint64_t count, Block& block) const;
  // False if the path does not lead to the whole file any more.
  bool is_current() const;
  std::size_t descriptors() const { return file_ ? 1 : 0; }

 private:
  StoredFile(std::string path, FileDescriptor file, const struct stat& opened);
  Result<void, ReadError> fill(Block& block, std::uint64_t needed) const;

  std::string path_, absolute_path_;
  FileDescriptor file_;  // closed: the file is mapped
  recording::MappedFile mapped_;
  dev_t device_;
  ino_t inode_;
  std::uint64_t size_;
};

}  // namespace millrace::training
