// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>

#include "bench/gpu_figures.h"
#include "bench/gpu_timing.h"
#include "gpu/host/device.h"

// The parts of gpu_bench. Each prints one or two sections.
namespace millrace::bench {

// The bandwidths that the other figures are compared with, in bytes per second.
struct Ceilings {
  double device_copy = 0;                // on the device: bytes read plus bytes written
  std::map<std::size_t, double> pinned;  // from locked pages to the device, by the size of the copy

  // The bandwidth of the largest measured copy of at most `bytes`. Requires: there is one.
  double pinned_at(std::size_t bytes) const { return std::prev(pinned.upper_bound(bytes))->second; }
};

Ceilings measure_copies(Figures& figures, const Timing& timing);

void measure_expand(Figures& figures, const Timing& timing, const Ceilings& ceilings);
void measure_slots(Figures& figures, const Timing& timing, const Ceilings& ceilings);
void measure_bus(Figures& figures, const Timing& timing);

// Through the interface that lanes use: `batches` batches, or `bytes` bytes, of each kind.
void measure_submitting(Figures& figures, Device& device, int batches);
void measure_slab_bandwidth(Figures& figures, Device& device, const Ceilings& ceilings,
                            std::size_t bytes);
void measure_timeline(Figures& figures, Device& device);

}  // namespace millrace::bench
