// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/frames/stored_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace millrace::training {
namespace {

// Bytes that are read at once if they are read forward. Larger blocks are not faster: those of 64
// streams would leave the processor's cache.
constexpr std::uint64_t block_bytes = 32 << 10;

ReadError read_error(const std::string& path, const std::string& why) {
  return {.fault = DataFault::read, .message = path + ": " + why};
}

ReadError cannot_be_read(const std::string& path, int error) {
  return read_error(path, std::string("cannot be read: ") + std::strerror(error));
}

}  // namespace

Result<StoredFile, ReadError> StoredFile::open(const std::string& path, bool mapped) {
  raise_descriptor_limit();
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) return cannot_be_read(path, errno);
  if (S_ISDIR(facts.st_mode)) return read_error(path, "is a folder");
  StoredFile opened(path, std::move(file), facts);
  if (mapped) try {
      opened.mapped_ = recording::MappedFile(opened.file_.get(), opened.size_);
      opened.file_ = FileDescriptor();
    } catch (const std::system_error& error) {
      return read_error(path, std::string("cannot be mapped: ") + error.what());
    }
  return opened;
}

StoredFile::StoredFile(std::string path, FileDescriptor file, const struct stat& opened)
    : path_(std::move(path)),
      absolute_path_(std::filesystem::absolute(path_).string()),
      file_(std::move(file)),
      device_(opened.st_dev),
      inode_(opened.st_ino),
      size_(static_cast<std::uint64_t>(opened.st_size)) {}

Result<Bytes, ReadError> StoredFile::read(std::uint64_t begin, std::uint64_t count,
                                          Block& block) const {
  if (!file_) return mapped_.bytes().subspan(begin, count);
  if (begin < block.begin_ || begin + count > block.end()) {
    const bool forward = begin >= block.begin_ && begin <= block.end();
    const std::uint64_t wanted = forward ? std::max(count, block_bytes) : count;
    block.bytes_.resize(std::min(wanted, size_ - begin));
    block.begin_ = begin;
    if (auto filled = fill(block, count); !filled) return std::move(filled).error();
  }
  return Bytes(block.bytes_).subspan(begin - block.begin_, count);
}

// A fault behind the needed bytes is one of a later read.
Result<void, ReadError> StoredFile::fill(Block& block, std::uint64_t needed) const {
  std::size_t done = 0;
  ssize_t got = 1;
  while (done < block.bytes_.size() && got > 0) {
    got = ::pread(file_.get(), block.bytes_.data() + done, block.bytes_.size() - done,
                  static_cast<off_t>(block.begin_ + done));
    if (got < 0 && errno == EINTR)
      got = 1;
    else if (got > 0)
      done += static_cast<std::size_t>(got);
  }
  const int error = errno;
  block.bytes_.resize(done);
  if (done >= needed) return {};
  if (got < 0) return cannot_be_read(path_, error);
  return ReadError{.fault = DataFault::length,
                   .message = path_ + ": was cut while it was read, to " +
                              std::to_string(block.begin_ + done) + " bytes"};
}

bool StoredFile::is_current() const {
  struct stat now {};
  return ::stat(absolute_path_.c_str(), &now) == 0 && now.st_ino == inode_ &&
         now.st_dev == device_ && static_cast<std::uint64_t>(now.st_size) >= size_;
}

}  // namespace millrace::training
