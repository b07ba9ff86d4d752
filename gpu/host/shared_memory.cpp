// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace millrace {

namespace {

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

// Maps the pages now, so that the first batch causes no page faults. Does so page by page:
// MAP_POPULATE holds the lock of the address space for up to a second per GiB. Meanwhile every mmap
// of this process waits, also those of malloc.
void populate(Bytes bytes) {
  constexpr std::size_t page = 4096;
  for (std::size_t at = 0; at < bytes.size(); at += page)
    (void)*static_cast<const volatile std::byte*>(&bytes[at]);
}

// Unmaps in pieces, for the same reason.
void unmap(MutableBytes bytes) {
  constexpr std::size_t most = std::size_t{4} << 20;
  while (!bytes.empty()) {
    const MutableBytes piece = bytes.first(std::min(most, bytes.size()));
    ::munmap(piece.data(), piece.size());
    bytes = bytes.subspan(piece.size());
  }
}

MutableBytes map_pages(int descriptor, std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) fail(errno, "cannot map shared memory");
  const MutableBytes mapped(static_cast<std::byte*>(memory), bytes);
  populate(mapped);
  return mapped;
}

}  // namespace

SharedMemory SharedMemory::create(std::size_t bytes) {
  const int descriptor = ::memfd_create("millrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) fail(errno, "cannot create shared memory");
  SharedMemory memory(descriptor, {});  // closes the descriptor if a step below throws
  // Allocates now: a later lack of memory would be a SIGBUS in the middle of a batch.
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (error != 0) fail(error, "cannot allocate shared memory");
  if (::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
    fail(errno, "cannot seal shared memory");
  memory.bytes_ = map_pages(descriptor, bytes);
  return memory;
}

SharedMemory SharedMemory::map(int descriptor, std::size_t bytes) {
  struct stat status {};
  if (::fstat(descriptor, &status) < 0) fail(errno, "cannot inspect shared memory");
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0) fail(errno, "cannot inspect shared memory");
  if (static_cast<std::size_t>(status.st_size) < bytes || (seals & F_SEAL_SHRINK) == 0)
    fail(EINVAL, "shared memory is too small or can shrink");
  return SharedMemory(-1, map_pages(descriptor, bytes));
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void SharedMemory::close_descriptor() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

SharedMemory::~SharedMemory() {
  unmap(bytes_);
  close_descriptor();
}

}  // namespace millrace
