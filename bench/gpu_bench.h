// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>

#include "bench/gpu_figures.h"
#include "bench/gpu_timing.h"
#include "gpu/host/device.h"

// The parts of gpu_bench. Each prints a section or two.
namespace millrace::bench {

// What everything else is measured against, in bytes per second.
struct Ceilings {
  double device_copy = 0;                // read and written
  std::map<std::size_t, double> pinned;  // to the device, by the bytes of a copy

  // Of the largest copy that has no more bytes.
  double pinned_at(std::size_t bytes) const { return std::prev(pinned.upper_bound(bytes))->second; }
};

Ceilings measure_copies(Figures& figures, const Timing& timing);

void measure_expand(Figures& figures, const Timing& timing, const Ceilings& ceilings);
void measure_slots(Figures& figures, const Timing& timing, const Ceilings& ceilings);
void measure_bus(Figures& figures, const Timing& timing);

// Through the interface that lanes use: so many batches, or bytes, of each kind.
void measure_submitting(Figures& figures, Device& device, int batches);
void measure_slab_bandwidth(Figures& figures, Device& device, const Ceilings& ceilings,
                            std::size_t bytes);
void measure_timeline(Figures& figures, Device& device);

}  // namespace millrace::bench
