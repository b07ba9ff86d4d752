// SPDX-License-Identifier: Apache-2.0
// Measures the kernels that work on the state of slots.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/gpu_bench.h"
#include "gpu/cuda/kernels.h"

namespace millrace::bench {

namespace {

// The state of slots, and a batch with half of the slots in random order. All its rows are reset.
class Slots {
 public:
  Slots(std::size_t row_bytes, std::uint32_t rows)
      : rows_(rows),
        state_(random_memory((2 * std::size_t{rows} + 1) * row_bytes)),
        batch_(random_memory(rows * row_bytes)),
        slot_(on_device(any_slots(rows))),
        reset_(on_device(std::vector<std::uint8_t>(rows, 1))),
        arena_{state_.get(), row_bytes} {}

  double bytes() const { return static_cast<double>(rows_ * arena_.row_bytes); }

  void gather(cudaStream_t on) const { gather_rows(arena_, slot(), rows_, batch_.get(), on); }
  void scatter(cudaStream_t on) const { scatter_rows(arena_, slot(), rows_, batch_.get(), on); }
  void reset(cudaStream_t on) const {
    reset_rows(arena_, slot(), reinterpret_cast<const std::uint8_t*>(reset_.get()), rows_, on);
  }

 private:
  static std::vector<std::int32_t> any_slots(std::uint32_t rows) {
    std::vector<std::int32_t> slots(2 * std::size_t{rows});
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), std::mt19937(2));
    slots.resize(rows);
    return slots;
  }
  const std::int32_t* slot() const { return reinterpret_cast<const std::int32_t*>(slot_.get()); }

  std::uint32_t rows_;
  cuda::Memory state_, batch_, slot_, reset_;
  cuda::Arena arena_;
};

struct Kernel {
  const char* name;
  void (Slots::*run)(cudaStream_t) const;
  int touched;  // how often each byte of the rows is read or written
};

constexpr Kernel kernels[] = {
    {"gather", &Slots::gather, 2}, {"scatter", &Slots::scatter, 2}, {"reset", &Slots::reset, 1}};

}  // namespace

void measure_slots(const Bench& bench) {
  const double ceiling = rate_on_device(bench);
  for (const std::size_t row_bytes : {std::size_t{512}, std::size_t{3200}, std::size_t{16} << 10,
                                      std::size_t{1} << 20, std::size_t{64} << 20}) {
    if (row_bytes > bench.amounts.large) break;
    const Slots slots(row_bytes, static_cast<std::uint32_t>(bench.amounts.large / row_bytes));
    for (const Kernel& kernel : kernels) {
      const double seconds =
          bench.timing.seconds(2, [&](cudaStream_t on) { (slots.*kernel.run)(on); });
      bench.figures.at_least(80,
                             std::string(kernel.name) + ", rows of " + std::to_string(row_bytes),
                             100 * kernel.touched * slots.bytes() / seconds / ceiling, "%");
    }
  }
  const Slots slots(16 << 10, 64);
  for (const Kernel& kernel : kernels) {
    const double seconds =
        bench.timing.seconds(50, [&](cudaStream_t on) { (slots.*kernel.run)(on); });
    bench.figures.add(std::string(kernel.name) + ", 64 rows of 16384, one after the other",
                      seconds * 1e6, "us");
  }
}

}  // namespace millrace::bench
