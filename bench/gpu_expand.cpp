// SPDX-License-Identifier: Apache-2.0
// Measures the kernel that makes tensors from slabs, and how much time it saves on the bus.
#include <cstdint>
#include <string>
#include <vector>

#include "bench/gpu_bench.h"
#include "bench/gpu_host_pages.h"
#include "gpu/cuda/kernels.h"

namespace millrace::bench {

namespace {

constexpr std::uint32_t body = 1600;

// Rows of s16 in device memory, and a tensor for them.
class Rows {
 public:
  // `context` columns precede each body. The left context of the rows varies from 0 to `context`.
  Rows(std::uint32_t rows, std::uint32_t context, Element dtype)
      : format_{.dtype = dtype, .context = context},
        rows_(rows),
        width_(context + body),
        left_(on_device(lefts(rows, context))),
        size_(on_device(std::vector<std::int32_t>(rows, body))),
        right_(on_device(std::vector<std::int32_t>(rows, 0))),
        frames_(random_memory(values() * 2)),
        tensor_(cuda::allocate(values() * size_of(dtype))) {}

  std::size_t values() const { return std::size_t{rows_} * width_; }
  std::byte* frames() const { return frames_.get(); }
  std::byte* tensor() const { return tensor_.get(); }
  // Bytes to read and to write. On average half of the context is in no window.
  double bytes() const {
    const double read = static_cast<double>(rows_) * (body + format_.context / 2.0) * 2;
    return read + static_cast<double>(values() * size_of(format_.dtype));
  }

  void expand(cudaStream_t stream) const {
    const auto numbers = [](const cuda::Memory& memory) {
      return reinterpret_cast<const std::int32_t*>(memory.get());
    };
    cuda::expand({frames(), numbers(left_), numbers(size_), numbers(right_), rows_, width_},
                 format_, tensor(), stream);
  }

 private:
  static std::vector<std::int32_t> lefts(std::uint32_t rows, std::uint32_t context) {
    std::vector<std::int32_t> left(rows);
    for (std::uint32_t row = 0; row < rows; ++row)
      left[row] = static_cast<std::int32_t>(context * (row % 11) / 10);
    return left;
  }

  RowFormat format_;
  std::uint32_t rows_, width_;
  cuda::Memory left_, size_, right_, frames_, tensor_;
};

void copy(const HostPages& from, std::byte* to, std::size_t bytes, cudaStream_t stream) {
  cuda::check(cudaMemcpyAsync(to, from.bytes().data(), bytes, cudaMemcpyHostToDevice, stream),
              "copying to the device");
}

}  // namespace

void measure_expand(const Bench& bench) {
  const double ceiling = rate_on_device(bench);
  const auto many = static_cast<std::uint32_t>(bench.amounts.large / 2 / body);
  for (const Element dtype : {Element::f32, Element::f16})
    for (const std::uint32_t context : {0u, 400u}) {
      const Rows rows(many, context, dtype);
      const double seconds = bench.timing.seconds(2, [&](cudaStream_t on) { rows.expand(on); });
      const std::string name = "s16 to " + std::string(name_of(dtype)) +
                               (context == 0 ? ", full windows" : ", with context");
      bench.figures.at_least(80, name, 100 * rows.bytes() / seconds / ceiling, "%");
    }
  for (const std::uint32_t few : {1u, 64u, 1024u}) {
    const Rows rows(few, 0, Element::f32);
    const double seconds = bench.timing.seconds(50, [&](cudaStream_t on) { rows.expand(on); });
    bench.figures.add("s16 to f32, " + std::to_string(few) + " rows, one after the other",
                      seconds * 1e6, "us");
  }
}

void measure_bus(const Bench& bench) {
  for (const std::uint32_t few : {64u, 1024u, 16'384u}) {
    if (std::size_t{few} * body * 2 > bench.amounts.copy) break;
    const Rows rows(few, 0, Element::f32);
    const HostPages pinned(rows.values() * 4, HostPages::Pages::pinned);
    const double expanded = bench.timing.seconds(1, [&](cudaStream_t on) {
      copy(pinned, rows.frames(), rows.values() * 2, on);
      rows.expand(on);
    });
    const double plain = bench.timing.seconds(
        1, [&](cudaStream_t on) { copy(pinned, rows.tensor(), rows.values() * 4, on); });
    const std::string name = std::to_string(few) + " rows of 1600";
    // Half the bytes, plus a kernel that does not overlap with the copy of another batch here.
    if (few > 64)
      bench.figures.at_most(0.6, name, expanded / plain, "");
    else
      bench.figures.add(name, expanded / plain, "");
  }
}

}  // namespace millrace::bench
