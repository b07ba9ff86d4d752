// SPDX-License-Identifier: Apache-2.0
// Kernels on the first device. Without a device each test case prints this and passes.
#include "gpu/cuda/kernels.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "gpu/cuda/calls.h"
#include "tests/gpu/cuda/kernel_cases.h"
#include "tests/support/skipped.h"

using namespace millrace;
using namespace millrace::test;
using cuda::check;

namespace {

// Device memory with poison around it.
class DeviceMemory : public KernelMemory {
 public:
  DeviceMemory(std::size_t bytes, std::size_t offset)
      : bytes_(bytes), before_(around + offset), memory_(cuda::allocate(all())) {
    check(cudaMemset(memory_.get(), std::to_integer<int>(poison), all()), "poisoning memory");
  }

  std::byte* at() const override { return memory_.get() + before_; }
  void write(Bytes bytes) override {
    check(cudaMemcpy(at(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "writing memory");
  }
  std::vector<std::byte> read() const override {
    const std::vector<std::byte> found = everything();
    const Bytes inner = Bytes(found).subspan(before_, bytes_);
    return {inner.begin(), inner.end()};
  }
  bool kept() const override {
    const std::vector<std::byte> found = everything();
    const auto is_poison = [](std::byte byte) { return byte == poison; };
    return std::ranges::all_of(Bytes(found).first(before_), is_poison) &&
           std::ranges::all_of(Bytes(found).subspan(before_ + bytes_), is_poison);
  }

 private:
  static constexpr std::size_t around = 256;

  std::size_t all() const { return before_ + bytes_ + around; }
  std::vector<std::byte> everything() const {
    std::vector<std::byte> found(all());
    check(cudaMemcpy(found.data(), memory_.get(), all(), cudaMemcpyDeviceToHost), "reading memory");
    return found;
  }

  std::size_t bytes_, before_;
  cuda::Memory memory_;
};

class FirstDevice : public KernelMachine {
 public:
  std::string name() const override { return "device"; }
  std::unique_ptr<KernelMemory> memory(std::size_t bytes, std::size_t offset) override {
    return std::make_unique<DeviceMemory>(bytes, offset);
  }

  void expand(const cuda::SlabRows& rows, const RowFormat& format, std::byte* tensor) override {
    cuda::expand(rows, format, tensor, stream_.get());
    wait();
  }
  void reset_rows(const cuda::Arena& arena, const std::int32_t* slot, const std::uint8_t* reset,
                  std::uint32_t rows) override {
    cuda::reset_rows(arena, slot, reset, rows, stream_.get());
    wait();
  }
  void gather_rows(const cuda::Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                   std::byte* to) override {
    cuda::gather_rows(arena, slot, rows, to, stream_.get());
    wait();
  }
  void scatter_rows(const cuda::Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                    const std::byte* from) override {
    cuda::scatter_rows(arena, slot, rows, from, stream_.get());
    wait();
  }

 private:
  void wait() { check(cudaStreamSynchronize(stream_.get()), "waiting for a kernel"); }

  cuda::Stream stream_ = cuda::make_stream();
};

void on_device(void (*check_kernels)(KernelMachine&)) {
  int devices = 0;
  const cudaError_t none = cudaGetDeviceCount(&devices);
  if (none != cudaSuccess) return say_skipped(cudaGetErrorString(none));
  try {
    FirstDevice device;
    check_kernels(device);
  } catch (const DeviceFailure& failure) {
    if (failure.fault() != DeviceFault::out_of_memory) throw;
    say_skipped(failure.what());
  }
}

}  // namespace

TEST_CASE("a device's kernels convert every value as the host does") { on_device(check_values); }

TEST_CASE(
    "a device's kernels lay rows out as the host does, with any padding around their windows") {
  on_device(check_windows);
}

TEST_CASE("a device's kernels expand batches that take many blocks") { on_device(check_batches); }

TEST_CASE("a device's kernels reset, gather and scatter slots of any size at any address") {
  on_device(check_slots);
}

TEST_CASE("a device's kernels reset, gather and scatter large state") { on_device(check_arenas); }

TEST_CASE("a device's kernels without work write no memory") { on_device(check_nothing); }

TEST_CASE("a device's kernels expand a tensor beyond 4 GiB") {
  on_device([](KernelMachine& machine) {
    constexpr std::uint32_t width = 1 << 30;
    const cuda::Memory frames = cuda::allocate(std::size_t{3} * width * 2);
    const cuda::Memory tensor = cuda::allocate(std::size_t{3} * width * 4);
    check(cudaMemset(frames.get(), 0x40, std::size_t{3} * width * 2), "writing memory");
    check(cudaMemset(tensor.get(), 0x77, std::size_t{3} * width * 4), "poisoning memory");
    const Placed<std::int32_t> left(machine, {0, 0, 0}), size(machine, {width, 0, width - 1}),
        right(machine, {0, 0, 0});
    machine.expand({frames.get(), left.at(), size.at(), right.at(), 3, width},
                   {.dtype = Element::f32}, tensor.get());
    const auto value_at = [&](std::size_t element) {
      float value = 0;
      check(cudaMemcpy(&value, tensor.get() + 4 * element, 4, cudaMemcpyDeviceToHost), "reading");
      return value;
    };
    const float frame = 0x4040 / 32768.0f;
    CHECK(value_at(0) == frame);
    CHECK(value_at(width - 1) == frame);
    CHECK(value_at(width) == 0);
    CHECK(value_at(std::size_t{2} * width - 1) == 0);
    CHECK(value_at(std::size_t{2} * width) == frame);
    CHECK(value_at(std::size_t{3} * width - 2) == frame);
    CHECK(value_at(std::size_t{3} * width - 1) == 0);
  });
}
