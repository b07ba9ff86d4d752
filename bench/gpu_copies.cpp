// SPDX-License-Identifier: Apache-2.0
// Measures plain copies.
#include <string>

#include "bench/gpu_bench.h"

namespace millrace::bench {

namespace {

using cuda::check;

std::string size_name(std::size_t bytes) {
  return bytes >= (1 << 20) ? std::to_string(bytes >> 20) + " MiB"
                            : std::to_string(bytes >> 10) + " KiB";
}

}  // namespace

Ceilings measure_copies(Figures& figures, const Timing& timing) {
  figures.section("copies");
  Ceilings ceilings;
  constexpr std::size_t least = 64 << 10, most = 256 << 20;
  const Pinned from = random_pinned(most);
  const cuda::Memory to = cuda::allocate(most);
  for (std::size_t bytes = least; bytes <= most; bytes *= 4) {
    const double seconds = timing.seconds(4, [&](cudaStream_t stream) {
      check(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyHostToDevice, stream),
            "copying to the device");
    });
    ceilings.pinned[bytes] = static_cast<double>(bytes) / seconds;
    figures.add("pinned to device, " + size_name(bytes), ceilings.pinned[bytes] / 1e9, "GB/s");
  }
  const std::size_t large = 2 * beyond_cache();
  const cuda::Memory source = random_memory(large), target = cuda::allocate(large);
  const double seconds = timing.seconds(2, [&](cudaStream_t stream) {
    check(cudaMemcpyAsync(target.get(), source.get(), large, cudaMemcpyDeviceToDevice, stream),
          "copying on the device");
  });
  ceilings.device_copy = 2.0 * static_cast<double>(large) / seconds;
  figures.add("device to device beyond the cache, read and written", ceilings.device_copy / 1e9,
              "GB/s");
  return ceilings;
}

}  // namespace millrace::bench
