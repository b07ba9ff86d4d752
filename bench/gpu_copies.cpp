// SPDX-License-Identifier: Apache-2.0
// Measures plain copies.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/gpu_bench.h"
#include "bench/gpu_host_pages.h"

namespace millrace::bench {

namespace {

using Pages = HostPages::Pages;

// The rates of copies from `from` to the device, up to all of it.
void measure_sizes(const Bench& bench, const std::string& kind, const HostPages& from,
                   std::size_t least) {
  const std::size_t most = from.bytes().size();
  const cuda::Memory to = cuda::allocate(most);
  for (std::size_t bytes = least; bytes <= most; bytes *= 4)
    bench.figures.add(kind + " to device, " + size_name(bytes),
                      rate_to_device(bench.timing, from.bytes().first(bytes), to.get()) / 1e9,
                      "GB/s");
}

// Whether slabs would gain from huge pages. A machine without them is no failure.
void measure_huge(const Bench& bench, const std::string& kind, Pages pages) try {
  const HostPages from(std::min(bench.amounts.copy, std::size_t{64} << 20), pages);
  bench.figures.add(
      kind + ", share in huge pages",
      100 * static_cast<double>(from.in_huge_pages()) / static_cast<double>(from.bytes().size()),
      "%");
  measure_sizes(bench, kind, from, 4 << 20);
} catch (const std::runtime_error& error) {
  bench.figures.text("  " + kind + ": not measured: " + error.what());
}

// A lane writes a slab while the one before it is copied: both use the host's memory.
void measure_beside_writing(const Bench& bench) {
  const std::size_t bytes = std::min(bench.amounts.copy, std::size_t{16} << 20);
  const HostPages from(bytes, Pages::memfd), next(bytes, Pages::memfd);
  const cuda::Memory to = cuda::allocate(bytes);
  const std::vector<std::byte> frames(bytes, std::byte{1});
  const std::jthread writing([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::memcpy(next.bytes().data(), frames.data(), bytes);
  });
  bench.figures.add("memfd to device beside writing a slab, " + size_name(bytes),
                    rate_to_device(bench.timing, from.bytes(), to.get()) / 1e9, "GB/s");
}

}  // namespace

std::string size_name(std::size_t bytes) {
  return bytes >= (1 << 20) ? std::to_string(bytes >> 20) + " MiB"
                            : std::to_string(bytes >> 10) + " KiB";
}

double rate_to_device(const Timing& timing, Bytes from, std::byte* to) {
  const double seconds = timing.seconds(4, [&](cudaStream_t stream) {
    cuda::check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream),
                "copying to the device");
  });
  return static_cast<double>(from.size()) / seconds;
}

double rate_on_device(const Bench& bench) {
  const std::size_t bytes = 2 * bench.amounts.large;
  const cuda::Memory source = random_memory(bytes), target = cuda::allocate(bytes);
  const double seconds = bench.timing.seconds(2, [&](cudaStream_t stream) {
    cuda::check(
        cudaMemcpyAsync(target.get(), source.get(), bytes, cudaMemcpyDeviceToDevice, stream),
        "copying on the device");
  });
  const double rate = 2.0 * static_cast<double>(bytes) / seconds;
  bench.figures.add("device to device beyond the cache, read and written", rate / 1e9, "GB/s");
  return rate;
}

void measure_copies(const Bench& bench) {
  constexpr std::size_t least = 64 << 10;
  measure_sizes(bench, "pinned", HostPages(bench.amounts.copy, Pages::pinned), least);
  measure_sizes(bench, "memfd", HostPages(bench.amounts.copy, Pages::memfd), least);
  measure_huge(bench, "memfd, MADV_HUGEPAGE", Pages::advised);
  measure_huge(bench, "memfd, MFD_HUGETLB", Pages::reserved);
  measure_beside_writing(bench);
  (void)rate_on_device(bench);
}

}  // namespace millrace::bench
