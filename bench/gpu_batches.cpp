// SPDX-License-Identifier: Apache-2.0
// Measures batches through the interface of devices, as lanes use it.
#include <algorithm>
#include <string>

#include "bench/gpu_bench.h"
#include "bench/gpu_lane.h"
#include "load/streams/histogram.h"

namespace millrace::bench {

namespace {

using load::Histogram;

constexpr std::uint32_t width = 1600;

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
  for (int batch = 0; batch < std::min(100, batches); ++batch) submit(lane, warm_up);
  for (int batch = 0; batch < batches; ++batch) submit(lane, times);
  lane.drain();
  return times;
}

}  // namespace

void measure_submitting(const Bench& bench) {
  Figures& figures = bench.figures;
  for (const std::uint32_t rows : {1u, 64u, 1024u}) {
    const Submitted times = submit_all(bench.device, rows, bench.amounts.batches);
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

}  // namespace millrace::bench
