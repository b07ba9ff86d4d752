// SPDX-License-Identifier: Apache-2.0
// Measures whether a batch is built and copied while the previous one computes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "bench/gpu_bench.h"
#include "bench/gpu_lane.h"
#include "bench/gpu_spin.h"

namespace millrace::bench {

namespace {

using cuda::check;

constexpr std::uint32_t rows = 64, width = 1600, credits = 2;
constexpr int batches = 200, shown_from = 20, shown = 8;
constexpr std::chrono::microseconds computing{300};

struct Batch {
  std::uint32_t slab = 0;
  Time build, submit, submitted;
  cuda::Event arrived = cuda::make_event(cudaEventDefault);
  cuda::Event begun = cuda::make_event(cudaEventDefault);
  cuda::Event ended = cuda::make_event(cudaEventDefault);
};

// One instant on the clocks of host and device. to() returns microseconds since then.
class Origin {
 public:
  explicit Origin(cudaStream_t stream) {
    check(cudaEventRecord(event_.get(), stream), "recording an event");
    check(cudaEventSynchronize(event_.get()), "waiting for an event");
    time_ = Clock::now();
  }

  double to(Time time) const {
    return std::chrono::duration<double, std::micro>(time - time_).count();
  }
  double to(const cuda::Event& event) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, event_.get(), event.get()),
          "reading the device's clock");
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  cuda::Event event_ = cuda::make_event(cudaEventDefault);
  Time time_;
};

void record(const cuda::Event& event, const cuda::Stream& stream) {
  check(cudaEventRecord(event.get(), stream.get()), "recording an event");
}

// Acts as a worker with two credits: when it has computed a batch it returns it, and it already has
// the next one.
void compute_all(Lane& lane, std::vector<Batch>& all, const cuda::Stream& stream) {
  const cuda::Stream probe = cuda::make_stream();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= credits) {
      check(cudaEventSynchronize(all[i - credits].ended.get()), "waiting for a batch");
      lane.done(all[i - credits].slab);
    }
    Batch& batch = all[i];
    batch.slab = lane.acquire();
    batch.build = Clock::now();
    const SlabShape shape = lane.build(batch.slab);
    batch.submit = Clock::now();
    lane.copy(batch.slab, shape);
    batch.submitted = Clock::now();
    (void)lane.take(batch.slab, shape);
    lane.reader().use_on(batch.slab, probe.get());
    record(batch.arrived, probe);
    lane.reader().use_on(batch.slab, stream.get());
    record(batch.begun, stream);
    spin(computing, stream.get());
    record(batch.ended, stream);
  }
  check(cudaStreamSynchronize(stream.get()), "computing");
  for (std::size_t i = all.size() - credits; i < all.size(); ++i) lane.done(all[i].slab);
  lane.drain();
}

void print(const Figures& figures, const std::vector<Batch>& all, const Origin& origin) {
  figures.text("  us:         build             copy and expand       compute");
  const double zero = origin.to(all[shown_from].build);
  for (std::size_t i = shown_from; i < shown_from + shown; ++i) {
    const Batch& batch = all[i];
    std::array<char, 128> line{};
    (void)std::snprintf(line.data(), line.size(),
                        "  batch %-3zu %7.0f - %-7.0f %7.0f - %-7.0f %7.0f - %-7.0f", i,
                        origin.to(batch.build) - zero, origin.to(batch.submit) - zero,
                        origin.to(batch.submit) - zero, origin.to(batch.arrived) - zero,
                        origin.to(batch.begun) - zero, origin.to(batch.ended) - zero);
    figures.text(line.data());
  }
}

}  // namespace

void measure_timeline(const Bench& bench) {
  Figures& figures = bench.figures;
  Lane lane(bench.device, credits + 1, rows, width);  // the number of slabs of a service
  const cuda::Stream stream = cuda::make_stream();
  std::vector<Batch> warm_up(4), all(batches);
  compute_all(lane, warm_up, stream);
  const Origin origin(stream.get());
  compute_all(lane, all, stream);
  print(figures, all, origin);
  std::vector<double> idle;
  double busy = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    idle.push_back(origin.to(all[i].begun) - origin.to(all[i - 1].ended));
    busy += origin.to(all[i].ended) - origin.to(all[i].begun);
  }
  std::ranges::sort(idle);
  const double whole = origin.to(all.back().ended) - origin.to(all[1].begun);
  figures.at_least(95, "share of the time in which the model computes", 100 * busy / whole, "%");
  figures.add("gap between two batches, p50", idle[idle.size() / 2], "us");
  figures.at_most(50, "gap between two batches, p95", idle[idle.size() * 95 / 100], "us");
  figures.add("gap between two batches, maximum", idle.back(), "us");
}

}  // namespace millrace::bench
