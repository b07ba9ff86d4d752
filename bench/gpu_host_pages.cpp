// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_host_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "bench/gpu_timing.h"

namespace millrace::bench {

namespace {

using Pages = HostPages::Pages;

void* require(void* memory, const char* what) {
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), what);
  return memory;
}

// Pages are allocated when they are first written: after the advice.
void* map(std::size_t bytes, Pages pages) {
  const unsigned flags = MFD_CLOEXEC | (pages == Pages::reserved ? MFD_HUGETLB : 0u);
  const int descriptor = ::memfd_create("gpu_bench", flags);
  if (descriptor < 0) (void)require(MAP_FAILED, "creating a memfd");
  const bool sized = ::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0;
  void* const memory =
      sized ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
            : MAP_FAILED;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  (void)require(memory,
                pages == Pages::reserved ? "mapping reserved huge pages" : "mapping a memfd");
  if (pages == Pages::advised) (void)::madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  cuda::check(cudaMallocHost(&memory, bytes), "locking pages");
  return memory;
}

}  // namespace

void HostPages::Release::operator()(std::byte* memory) const {
  if (mapped > 0)
    ::munmap(memory, mapped);
  else
    cuda::ignore(cudaFreeHost(memory));
}

HostPages::HostPages(std::size_t bytes, Pages pages) {
  const bool pinned = pages == Pages::pinned;
  void* const memory = pinned ? allocate(bytes) : map(bytes, pages);
  memory_ = {static_cast<std::byte*>(memory), Release{pinned ? 0 : bytes}};
  bytes_ = {memory_.get(), bytes};
  fill_randomly(bytes_);
  if (pinned) return;
  cuda::check(cudaHostRegister(memory_.get(), bytes, cudaHostRegisterDefault), "locking pages");
  locked_.reset(memory_.get());
}

std::size_t HostPages::in_huge_pages() const {
  std::ostringstream mapping;
  mapping << std::hex << reinterpret_cast<std::uintptr_t>(memory_.get()) << '-';
  std::ifstream maps("/proc/self/smaps");
  std::size_t kibibytes = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (std::isupper(line[0]) == 0) inside = line.starts_with(mapping.str());  // BEGIN-END …
    for (const char* name : {"ShmemPmdMapped:", "Shared_Hugetlb:", "Private_Hugetlb:"})
      if (inside && line.starts_with(name)) kibibytes += std::stoul(line.substr(std::strlen(name)));
  }
  return kibibytes << 10;
}

}  // namespace millrace::bench
