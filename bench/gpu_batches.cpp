// SPDX-License-Identifier: Apache-2.0
// Measures batches through the interface of devices, as lanes use it.
#include <ctime>
#include <string>

#include "bench/gpu_bench.h"
#include "bench/gpu_lane.h"
#include "load/streams/histogram.h"

namespace millrace::bench {

namespace {

using load::Histogram;

constexpr std::uint32_t width = 1600;

double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// The CPU time of this thread.
Duration cpu_time() {
  timespec time{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

Time wait_for(cudaEvent_t event) {
  for (;;) {
    const cudaError_t state = cudaEventQuery(event);
    if (state == cudaSuccess) return Clock::now();
    if (state != cudaErrorNotReady) cuda::check(state, "waiting for a batch");
  }
}

struct Submitted {
  Histogram cpu;    // CPU time to start the copy
  Histogram ready;  // time from closed until the batch may be used
};

void submit(Lane& lane, Submitted& times) {
  const std::uint32_t slab = lane.acquire();
  const SlabShape shape = lane.build(slab);
  const Time closed = Clock::now();
  const Duration before = cpu_time();
  lane.copy(slab, shape);
  times.cpu.add(cpu_time() - before);
  const DeviceArrays batch = lane.take(slab, shape);
  times.ready.add(wait_for(static_cast<cudaEvent_t>(batch.ready)) - closed);
  lane.done(slab);
}

Submitted submit_all(Device& device, std::uint32_t rows, int batches) {
  Lane lane(device, 3, rows, width);
  Submitted warm_up, times;
  for (int batch = 0; batch < 100; ++batch) submit(lane, warm_up);
  for (int batch = 0; batch < batches; ++batch) submit(lane, times);
  lane.drain();
  return times;
}

}  // namespace

void measure_submitting(Figures& figures, Device& device, int batches) {
  figures.section("batches of rows of 1600 s16, on the device as f32");
  for (const std::uint32_t rows : {1u, 64u, 1024u}) {
    const Submitted times = submit_all(device, rows, batches);
    const std::string of = ", " + std::to_string(rows) + " rows";
    for (const auto& [part, name] : {std::pair{0.5, " p50"}, {0.99, " p99"}})
      figures.at_most(10, "CPU of starting a copy" + of + name,
                      microseconds(times.cpu.quantile(part)), "us");
    figures.add("from closed to ready" + of + " p50", microseconds(times.ready.quantile(0.5)),
                "us");
    const double late = microseconds(times.ready.quantile(0.99));
    const std::string name = "from closed to ready" + of + " p99";
    if (rows == 64)
      figures.at_most(50, name, late, "us");
    else
      figures.add(name, late, "us");
  }
}

void measure_slab_bandwidth(Figures& figures, Device& device, const Ceilings& ceilings,
                            std::size_t bytes) {
  figures.section("consecutive slabs, as a share of the bandwidth of a pinned copy");
  for (const std::uint32_t rows : {1311u, 5243u, 20'972u}) {  // 4, 16, 64 MiB
    Lane lane(device, 4, rows, width);
    // Slabs are written once: this measures the bus, not the writing.
    for (std::uint32_t slab = 0; slab < 4; ++slab) (void)lane.build(slab);
    const std::size_t all = bytes / lane.bytes();
    const auto give = [&](std::size_t count) {
      for (std::size_t batch = 0; batch < count; ++batch) {
        const std::uint32_t slab = lane.acquire();
        lane.copy(slab, lane.shape());
        (void)lane.take(slab, lane.shape());
        lane.done(slab);
      }
      lane.drain();
    };
    give(8);
    const Time begun = Clock::now();
    give(all);
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    const double rate = static_cast<double>(lane.bytes() * all) / seconds;
    figures.at_least(80, std::to_string(lane.bytes() >> 20) + " MiB",
                     100 * rate / ceilings.pinned_at(lane.bytes()), "%");
  }
}

}  // namespace millrace::bench
