// SPDX-License-Identifier: Apache-2.0
// Measures the bandwidth of consecutive slabs of lanes.
#include <deque>
#include <string>

#include "bench/gpu_bench.h"
#include "bench/gpu_host_pages.h"
#include "bench/gpu_lane.h"

namespace millrace::bench {

namespace {

constexpr std::uint32_t width = 1600, slabs = 4;

// Lanes that copy slabs by turns. Slabs are written once: this measures the bus, not the writing.
class Lanes {
 public:
  Lanes(Device& device, int lanes, std::uint32_t rows) {
    while (lanes-- > 0) {
      Lane& lane = lanes_.emplace_back(device, slabs, rows, width);
      for (std::uint32_t slab = 0; slab < slabs; ++slab) (void)lane.build(slab);
    }
  }

  std::size_t slab_bytes() const { return lanes_.front().bytes(); }

  // The bandwidth, in bytes per second.
  double rate(std::size_t bytes) {
    const std::size_t count = bytes / slab_bytes() / lanes_.size();
    copy(2 * slabs);
    const Time begun = Clock::now();
    copy(count);
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    return static_cast<double>(slab_bytes() * count * lanes_.size()) / seconds;
  }

 private:
  // Copies this number of slabs of each lane.
  void copy(std::size_t count) {
    for (std::size_t batch = 0; batch < count; ++batch)
      for (Lane& lane : lanes_) {
        const std::uint32_t slab = lane.acquire();
        lane.copy(slab, lane.shape());
        (void)lane.take(slab, lane.shape());
        lane.done(slab);
      }
    for (Lane& lane : lanes_) lane.drain();
  }

  std::deque<Lane> lanes_;  // the reports of a lane need its address
};

double ceiling(const Bench& bench, std::size_t bytes, HostPages::Pages pages) {
  const HostPages from(bytes, pages);
  const cuda::Memory to = cuda::allocate(bytes);
  return rate_to_device(bench.timing, from.bytes(), to.get());
}

}  // namespace

void measure_slabs(const Bench& bench) {
  for (const std::uint32_t rows : {1310u, 5242u, 20'971u}) {  // 4, 16, 64 MiB
    if (std::size_t{rows} * width * 2 > bench.amounts.copy) break;
    Lanes one(bench.device, 1, rows);
    const std::size_t bytes = one.slab_bytes();
    const std::string of = std::to_string((bytes + (1 << 19)) >> 20) + " MiB, of a copy from ";
    const double pinned = ceiling(bench, bytes, HostPages::Pages::pinned);
    const double rate = one.rate(bench.amounts.slab_bytes);
    bench.figures.at_least(80, of + "pinned pages", 100 * rate / pinned, "%");
    bench.figures.at_least(80, of + "a memfd",
                           100 * rate / ceiling(bench, bytes, HostPages::Pages::memfd), "%");
    Lanes two(bench.device, 2, rows);
    bench.figures.add(of + "pinned pages, two lanes at once",
                      100 * two.rate(bench.amounts.slab_bytes) / pinned, "%");
  }
}

}  // namespace millrace::bench
