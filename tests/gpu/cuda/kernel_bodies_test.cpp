// SPDX-License-Identifier: Apache-2.0
// The code of the kernels, with all of its threads on the host.
#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <new>
#include <random>

#include "gpu/cuda/expand_kernel.h"
#include "gpu/cuda/row_kernels.h"
#include "tests/gpu/cuda/kernel_cases.h"

using namespace millrace;
using namespace millrace::test;
using cuda::FastDivision;
using cuda::WideDivision;

namespace {

// Memory of exactly `bytes` bytes, so that sanitizers detect accesses after its end; or with
// `behind` more bytes of poison, which show writes without a sanitizer.
class HostMemory : public KernelMemory {
 public:
  HostMemory(std::size_t bytes, std::size_t offset, std::size_t behind)
      : bytes_(bytes),
        offset_(offset),
        all_(offset + bytes + behind),
        memory_(static_cast<std::byte*>(::operator new (all_, std::align_val_t{16}))) {
    std::fill_n(memory_, all_, poison);
  }
  HostMemory(const HostMemory&) = delete;
  ~HostMemory() override { ::operator delete (memory_, std::align_val_t{16}); }

  std::byte* at() const override { return memory_ + offset_; }
  void write(Bytes bytes) override { std::ranges::copy(bytes, at()); }
  std::vector<std::byte> read() const override { return {at(), at() + bytes_}; }
  bool kept() const override {
    const auto is_poison = [](std::byte byte) { return byte == poison; };
    return std::all_of(memory_, at(), is_poison) &&
           std::all_of(at() + bytes_, memory_ + all_, is_poison);
  }

 private:
  std::size_t bytes_, offset_, all_;
  std::byte* memory_;
};

// Runs each task as kernels.h would choose it, or with the 64-bit indices for large arrays.
class Host : public KernelMachine {
  auto moves(const cuda::Arena& arena, const std::int32_t* slot, std::uint32_t rows,
             std::byte* other) const {
    return [=, this]<cuda::Direction direction, class Unit, class D>(
               const cuda::MoveTask<direction, Unit, D>& task) {
      if (!wide_) return run_here(task);
      run_here(cuda::MoveTask<direction, Unit, WideDivision>({arena, slot, rows}, other));
    };
  }

 public:
  Host(bool wide, std::size_t behind) : wide_(wide), behind_(behind) {}

  std::string name() const override { return wide_ ? "host, wide indices" : "host"; }
  std::unique_ptr<KernelMemory> memory(std::size_t bytes, std::size_t offset) override {
    return std::make_unique<HostMemory>(bytes, offset, behind_);
  }

  void expand(const cuda::SlabRows& rows, const RowFormat& format, std::byte* tensor) override {
    cuda::with_expand(rows, format, tensor,
                      [&]<class Cast, class D>(const cuda::ExpandTask<Cast, D>& task) {
                        if (!wide_) return run_here(task);
                        run_here(cuda::ExpandTask<Cast, WideDivision>(rows, format, tensor));
                      });
  }
  void reset_rows(const cuda::Arena& arena, const std::int32_t* slot, const std::uint8_t* reset,
                  std::uint32_t rows) override {
    cuda::with_reset(
        arena, slot, reset, rows, [&]<class Unit, class D>(const cuda::ResetTask<Unit, D>& task) {
          if (!wide_) return run_here(task);
          run_here(cuda::ResetTask(cuda::SlotRows<Unit, WideDivision>(arena, slot, rows), reset));
        });
  }
  void gather_rows(const cuda::Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                   std::byte* to) override {
    cuda::with_gather(arena, slot, rows, to, moves(arena, slot, rows, to));
  }
  void scatter_rows(const cuda::Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                    const std::byte* from) override {
    cuda::with_scatter(arena, slot, rows, from,
                       moves(arena, slot, rows, const_cast<std::byte*>(from)));
  }

 private:
  bool wide_;
  std::size_t behind_;
};

Host host_under_test() {
  const bool wide = GENERATE(false, true);
  const std::size_t behind = GENERATE(0, 64);
  return Host(wide, behind);
}

// A range of `bytes` addresses. Only the pages that are used take memory.
class Sparse {
 public:
  explicit Sparse(std::size_t bytes)
      : bytes_(bytes),
        at_(static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    REQUIRE(at_ != MAP_FAILED);
  }
  Sparse(const Sparse&) = delete;
  ~Sparse() { ::munmap(at_, bytes_); }

  std::byte* at() const { return at_; }

 private:
  std::size_t bytes_;
  std::byte* at_;
};

// Runs the threads of one block.
template <class Task>
void run_block(const Task& task, std::uint64_t block) {
  for (std::uint32_t index = 0; index < cuda::threads_per_block; ++index)
    task(cuda::Thread{static_cast<std::uint32_t>(block), index});
}

}  // namespace

TEST_CASE("kernels convert every value as the host does") {
  Host host = host_under_test();
  check_values(host);
}

TEST_CASE("kernels lay rows out as the host does, with any padding around their windows") {
  Host host = host_under_test();
  check_windows(host);
}

TEST_CASE("kernels expand batches that take many blocks") {
  Host host = host_under_test();
  check_batches(host);
}

TEST_CASE("kernels reset, gather and scatter slots of any size at any address") {
  Host host = host_under_test();
  check_slots(host);
}

TEST_CASE("kernels reset, gather and scatter large state") {
  Host host = host_under_test();
  check_arenas(host);
}

TEST_CASE("kernels without work write no memory") {
  Host host = host_under_test();
  check_nothing(host);
}

TEST_CASE("division by multiplication gives the exact quotient") {
  std::mt19937_64 random(7);
  const auto check = [](std::uint64_t divisor, std::uint64_t n) {
    if (n >= FastDivision::bound) return;
    if (FastDivision(divisor)(static_cast<std::uint32_t>(n)) != n / divisor)
      FAIL(n << " / " << divisor);
  };
  const auto check_around = [&](std::uint64_t divisor) {
    for (const std::uint64_t multiple :
         {divisor, random() % FastDivision::bound, FastDivision::bound - 1})
      for (const std::uint64_t n : {multiple / divisor * divisor, std::uint64_t{0}})
        for (const std::uint64_t more : {std::uint64_t{0}, divisor / 2, divisor - 1, divisor})
          check(divisor, n + more);
    check(divisor, FastDivision::bound - 1);
  };
  for (std::uint64_t divisor = 1; divisor < 100'000; ++divisor) check_around(divisor);
  for (int i = 0; i < 100'000; ++i) check_around(1 + random() % FastDivision::bound);
  for (std::uint64_t power = 1; power <= FastDivision::bound; power *= 2)
    for (const std::uint64_t divisor : {power - 1, power, power + 1})
      if (divisor >= 1 && divisor <= FastDivision::bound) check_around(divisor);
}

TEST_CASE("the rows of a tensor may be beyond 4 GiB") {
  constexpr std::uint32_t width = 1 << 30;
  const Sparse frames(std::size_t{3} * width * 2), tensor(std::size_t{3} * width * 4);
  const std::vector<std::int32_t> left{0, 0, 0}, size{width, width, width - 1}, right{0, 0, 0};
  const cuda::SlabRows rows{frames.at(), left.data(), size.data(), right.data(), 3, width};
  const std::size_t last = std::size_t{3} * width - 2;  // the last value with a frame
  const std::int16_t samples[] = {16384, 77};
  std::memcpy(frames.at() + 2 * last, samples, 4);
  cuda::with_expand(rows, {.dtype = Element::f32}, tensor.at(),
                    [](const auto& task) { run_block(task, task.blocks() - 1); });
  const float expected[] = {0.5f, 0.0f};
  CHECK(std::memcmp(tensor.at() + 4 * last, expected, 8) == 0);
}

TEST_CASE("the state of slots may be beyond 4 GiB") {
  constexpr std::size_t row_bytes = std::size_t{5} << 30;
  const Sparse state(3 * row_bytes), rows(2 * row_bytes);
  const std::vector<std::int32_t> slot{0, 2};
  const cuda::Arena arena{state.at(), row_bytes};
  const auto run_last = [](const auto& task) { run_block(task, task.blocks() - 1); };
  std::byte& last = state.at()[3 * row_bytes - 1];

  last = std::byte{5};
  cuda::with_gather(arena, slot.data(), 2, rows.at(), run_last);
  CHECK(rows.at()[2 * row_bytes - 1] == std::byte{5});
  rows.at()[2 * row_bytes - 1] = std::byte{6};
  cuda::with_scatter(arena, slot.data(), 2, rows.at(), run_last);
  CHECK(last == std::byte{6});
  const std::vector<std::uint8_t> reset{0, 1};
  cuda::with_reset(arena, slot.data(), reset.data(), 2, run_last);
  CHECK(last == std::byte{0});
}
