// SPDX-License-Identifier: Apache-2.0
#include "recording/files/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace millrace::recording {

std::error_code last_error() { return {errno, std::generic_category()}; }

namespace {

// Repeats a call that returns -1 and EINTR.
template <class Call>
Result<void, std::error_code> repeated(Call call) {
  for (;;) {
    if (call() == 0) return {};
    if (errno != EINTR) return last_error();
  }
}

}  // namespace

Result<void, std::error_code> write_all(int descriptor, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    else if (written == 0)
      return std::error_code(EIO, std::generic_category());
    else if (errno != EINTR)
      return last_error();
  }
  return {};
}

Result<void, std::error_code> sync_data(int descriptor) {
  return repeated([=] { return ::fdatasync(descriptor); });
}

Result<void, std::error_code> reserve(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  const auto reserved = repeated([=] {
    return ::fallocate(descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(bytes));
  });
  if (!reserved && (reserved.error() == std::errc::operation_not_supported ||
                    reserved.error() == std::errc::function_not_supported))
    return {};
  return reserved;
}

Result<void, std::error_code> truncate(int descriptor, std::uint64_t size) {
  return repeated([=] { return ::ftruncate(descriptor, static_cast<off_t>(size)); });
}

std::uint64_t file_size(int descriptor) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) throw std::system_error(last_error(), "fstat");
  return static_cast<std::uint64_t>(facts.st_size);
}

Entries entries_of(int directory, const char* folder) {
  const int own = ::openat(directory, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (own < 0) return nullptr;
  Entries entries(::fdopendir(own));
  if (!entries) ::close(own);
  return entries;
}

MappedFile::MappedFile(int descriptor, std::uint64_t size) {
  if (size == 0) return;
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) throw std::system_error(last_error(), "mmap");
  bytes_ = {static_cast<const std::byte*>(memory), static_cast<std::size_t>(size)};
}

bool MappedFile::load(std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset - offset % page;
  auto* memory = const_cast<std::byte*>(bytes_.data()) + begin;
  return ::madvise(memory, offset + bytes - begin, MADV_POPULATE_READ) == 0 || errno != EFAULT;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, Bytes())) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace millrace::recording
