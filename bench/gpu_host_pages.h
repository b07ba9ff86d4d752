// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "gpu/cuda/calls.h"

namespace millrace::bench {

// Host memory with locked pages and random bits. Confined to one thread.
class HostPages {
 public:
  enum class Pages : std::uint8_t {
    pinned,    // allocated by CUDA
    memfd,     // as slabs are: a memfd with small pages
    advised,   // a memfd that may have huge pages; the kernel decides
    reserved,  // a memfd with the huge pages that the machine has reserved
  };

  // `bytes` is a multiple of 2 MiB if the pages are to be huge ones, and of 4 KiB otherwise. Throws
  // DeviceFailure, also if the pages cannot be locked, and std::system_error if there is no
  // such memory.
  HostPages(std::size_t bytes, Pages pages);

  MutableBytes bytes() const { return bytes_; }
  // How many bytes are in huge pages, as the kernel says. Requires: a memfd.
  std::size_t in_huge_pages() const;

 private:
  struct Release {
    std::size_t mapped;  // bytes; 0: allocated by CUDA
    void operator()(std::byte* memory) const;
  };

  std::unique_ptr<std::byte, Release> memory_;
  MutableBytes bytes_;
  cuda::LockedPages locked_;  // null if CUDA has allocated them
};

}  // namespace millrace::bench
