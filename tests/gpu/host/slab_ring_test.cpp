// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/slab_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

#include "base/time.h"
#include "gpu/host/slab_layout.h"

using namespace millrace;

namespace {

// The resident bytes of the mapping at `begin`, which this process can use without a page fault.
std::size_t resident_bytes(const void* begin) {
  std::ostringstream head;
  head << std::hex << reinterpret_cast<std::uintptr_t>(begin) << '-';
  std::ifstream mappings("/proc/self/smaps");
  std::string line;
  while (std::getline(mappings, line) && !line.starts_with(head.str())) {
  }
  while (std::getline(mappings, line) && !line.starts_with("Rss:")) {
  }
  return 1024 * std::stoul(line.substr(4));
}

// Maps and unmaps a page in another thread again and again while `work` runs. Returns the longest
// time that this took, as a part of the time of `work`.
double longest_wait_beside(auto&& work) {
  std::atomic<bool> running = false;
  Duration longest{};
  std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const Time began = Clock::now();
      ::munmap(::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1);
      if (running.exchange(true)) longest = std::max(longest, Clock::now() - began);
    }
  });
  while (!running) std::this_thread::yield();
  const Time began = Clock::now();
  work();
  const Duration took = Clock::now() - began;
  other.request_stop();
  other.join();
  return std::chrono::duration<double>(longest) / took;
}

}  // namespace

TEST_CASE("acquire() returns the lowest free slab, and nullopt when all are in use") {
  SlabRing ring(3, 100);
  CHECK(ring.acquire() == 0);
  CHECK(ring.acquire() == 1);
  CHECK(ring.acquire() == 2);
  CHECK(ring.acquire() == std::nullopt);
  ring.release(2);
  ring.release(0);
  CHECK(ring.acquire() == 0);
  CHECK(ring.acquire() == 2);
}

TEST_CASE("slabs are on separate pages, one after another") {
  SlabRing ring(3, 5000);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  CHECK(ring.slabs() == 3);
  CHECK(ring.slab_bytes() >= 5000);
  CHECK(ring.slab_bytes() % page == 0);
  CHECK(page % slab_alignment == 0);
  CHECK(ring.memory().size() == 3 * ring.slab_bytes());
  CHECK(ring.slab(2).data() == ring.memory().data() + 2 * ring.slab_bytes());
  CHECK(ring.slab(2).size() == ring.slab_bytes());
}

TEST_CASE("bytes written into a slab are visible where its descriptor is mapped") {
  SlabRing ring(2, 4096);
  const SharedMemory worker = SharedMemory::map(ring.descriptor(), ring.memory().size());
  REQUIRE(worker.bytes().data() != ring.memory().data());
  ring.slab(1)[17] = std::byte{42};
  CHECK(worker.bytes()[ring.slab_bytes() + 17] == std::byte{42});
}

TEST_CASE("the worker's mapping stays valid when the ring is destroyed") {
  std::optional<SlabRing> ring(std::in_place, 1, 4096);
  const SharedMemory worker = SharedMemory::map(ring->descriptor(), ring->memory().size());
  ring->slab(0)[0] = std::byte{7};
  ring.reset();
  CHECK(worker.bytes()[0] == std::byte{7});
}

TEST_CASE("the size of shared memory cannot be changed, nor its seals") {
  const SharedMemory memory = SharedMemory::create(8192);
  CHECK(::ftruncate(memory.descriptor(), 4096) == -1);
  CHECK(::ftruncate(memory.descriptor(), 16384) == -1);
  CHECK(::fcntl(memory.descriptor(), F_ADD_SEALS, F_SEAL_WRITE) == -1);
}

TEST_CASE("the descriptor of shared memory is closed by exec") {
  const SharedMemory memory = SharedMemory::create(4096);
  CHECK((::fcntl(memory.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("shared memory that is too small, or could shrink, is not mapped") {
  const SharedMemory memory = SharedMemory::create(4096);
  CHECK_THROWS_AS(SharedMemory::map(memory.descriptor(), 8192), std::system_error);
  const int open = ::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(::ftruncate(open, 4096) == 0);
  CHECK_THROWS_AS(SharedMemory::map(open, 4096), std::system_error);
  ::close(open);
}

TEST_CASE("shared memory of an impossible size is an error when it is created") {
  CHECK_THROWS_AS(SharedMemory::create(0), std::system_error);
  CHECK_THROWS_AS(SharedMemory::create(~std::size_t{0}), std::system_error);
}

TEST_CASE("shared memory moves with its descriptor and its mapping") {
  SharedMemory first = SharedMemory::create(4096);
  first.bytes()[0] = std::byte{9};
  const int descriptor = first.descriptor();
  SharedMemory second = std::move(first);
  first = SharedMemory::create(4096);
  CHECK(second.descriptor() == descriptor);
  CHECK(second.bytes()[0] == std::byte{9});
  CHECK(first.bytes()[0] == std::byte{0});
}

TEST_CASE("shared memory has all its pages when it is created, and when it is mapped") {
  constexpr std::size_t bytes = std::size_t{4} << 20;
  const SharedMemory made = SharedMemory::create(bytes);
  const SharedMemory mapped = SharedMemory::map(made.descriptor(), bytes);
  CHECK(resident_bytes(made.bytes().data()) == bytes);
  CHECK(resident_bytes(mapped.bytes().data()) == bytes);
}

TEST_CASE("while shared memory is mapped and unmapped, other threads can map memory") {
  constexpr std::size_t bytes = std::size_t{128} << 20;
  constexpr double most = 0.6;  // a share of the time; 1 if one call maps or unmaps all pages
  const SharedMemory made = SharedMemory::create(bytes);
  double least = 1;
  // Several attempts, because the machine may be busy with other work.
  for (int attempt = 0; attempt < 50 && least >= most; ++attempt)
    least = std::min(least, longest_wait_beside([&] {
                       const auto mapped = SharedMemory::map(made.descriptor(), bytes);
                     }));
  CHECK(least < most);
}
