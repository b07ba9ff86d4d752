// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/frames/stored_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace millrace::training {
namespace {

// Bytes that are read at once if they are read forward. Larger blocks are not faster: those of 64
// streams would leave the processor's cache.
constexpr std::uint64_t block_bytes = 32 << 10;

std::atomic<std::uint64_t> kept{0};  // descriptors of the files of this process

bool may_keep() {
  static const std::uint64_t raised = raise_descriptor_limit();
  if (kept++ < std::min(raised, descriptor_limit()) / 2) return true;
  --kept;
  return false;
}

ReadError read_error(const std::string& path, const std::string& why) {
  return {.fault = DataFault::read, .message = path + ": " + why};
}

ReadError cannot_be_read(const std::string& path, int error) {
  return read_error(path, std::string("cannot be read: ") + std::strerror(error));
}

}  // namespace

void check_descriptors(const std::string& path, int error) {
  if (error != EMFILE && error != ENFILE) return;
  throw std::runtime_error(path + ": cannot be opened: " + std::strerror(error) +
                           "; this process may have " + std::to_string(descriptor_limit()) +
                           " (ulimit -n); fewer slots or threads need fewer files");
}

void StoredFile::Block::clear() {
  bytes_.clear();
  if (bytes_.capacity() > 2 * block_bytes) bytes_.shrink_to_fit();
}

Result<StoredFile, ReadError> StoredFile::open(const std::string& path, bool mapped) {
  auto opened = open_file(path, path);
  if (!opened) return std::move(opened).error();
  try {
    return StoredFile(path, std::move(*opened), mapped);
  } catch (const std::system_error& error) {
    return read_error(path, std::string("cannot be mapped: ") + error.what());
  }
}

StoredFile::StoredFile(std::string path, Opened opened, bool mapped)
    : path_(std::move(path)),
      absolute_path_(std::filesystem::absolute(path_).string()),
      identity_(opened.identity) {
  if (mapped) {
    mapped_.emplace(opened.file.get(), identity_.bytes);
  } else if (may_keep()) {
    file_ = std::move(opened.file);
  }
}

StoredFile::StoredFile(StoredFile&& other) noexcept = default;

StoredFile::~StoredFile() {
  if (file_) --kept;
}

Result<StoredFile::Opened, ReadError> StoredFile::open_file(const std::string& shown,
                                                            const std::string& path) {
  // Without O_NONBLOCK, a pipe would wait for a writer.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) {
    const int error = errno;
    check_descriptors(shown, error);
    return cannot_be_read(shown, error);
  }
  if (S_ISDIR(facts.st_mode)) return read_error(shown, "is a folder");
  if (!S_ISREG(facts.st_mode)) return read_error(shown, "is not a file");
  return Opened{.file = std::move(file), .identity = identity_from(facts)};
}

Result<Bytes, ReadError> StoredFile::read(std::uint64_t begin, std::uint64_t count,
                                          Block& block) const {
  if (count == 0) return Bytes();
  if (mapped_) return mapped_->bytes().subspan(begin, count);
  if (begin < block.begin_ || begin + count > block.end()) {
    const bool forward = begin >= block.begin_ && begin <= block.end();
    const std::uint64_t wanted = forward ? std::max(count, block_bytes) : count;
    block.bytes_.resize(std::min(wanted, identity_.bytes - begin));
    block.begin_ = begin;
    if (auto filled = fill(block, count); !filled) return std::move(filled).error();
  }
  return Bytes(block.bytes_).subspan(begin - block.begin_, count);
}

Result<void, ReadError> StoredFile::fill(Block& block, std::uint64_t needed) const {
  if (file_) return fill(file_.get(), block, needed);
  auto again = open_file(path_, absolute_path_);
  if (again && again->identity == identity_) return fill(again->file.get(), block, needed);
  block.bytes_.clear();
  if (!again) return std::move(again).error();
  return read_error(path_, "was changed while it was read");
}

// A fault behind the needed bytes is one of a later read.
Result<void, ReadError> StoredFile::fill(int file, Block& block, std::uint64_t needed) const {
  std::size_t done = 0;
  int error = 0;
  for (bool more = true; more && done < block.bytes_.size();) {
    const ssize_t got = ::pread(file, block.bytes_.data() + done, block.bytes_.size() - done,
                                static_cast<off_t>(block.begin_ + done));
    if (got > 0) done += static_cast<std::size_t>(got);
    error = got < 0 ? errno : 0;
    more = got > 0 || error == EINTR;
  }
  block.bytes_.resize(done);
  if (done >= needed) return {};
  if (error != 0) return cannot_be_read(path_, error);
  struct stat now {};
  ::fstat(file, &now);
  return ReadError{.fault = DataFault::length,
                   .message = path_ + ": was cut while it was read, to " +
                              std::to_string(now.st_size) + " bytes"};
}

bool StoredFile::is_current() const { return identity_of(absolute_path_) == identity_; }

}  // namespace millrace::training
