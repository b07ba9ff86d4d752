// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "bench/gpu_figures.h"
#include "bench/gpu_timing.h"
#include "gpu/host/device.h"

// The sections of gpu_bench. Each measures the bandwidths of copies that it compares with itself,
// so that it can run alone.
namespace millrace::bench {

// How much is measured.
struct Amounts {
  int batches;             // number of batches of each kind
  std::size_t slab_bytes;  // bytes to copy in slabs of each size
  std::size_t copy;        // bytes of the largest copy from the host
  std::size_t large;       // bytes of device memory that do not fit in the device's cache
};

// A run of the benchmark, as its sections see it.
struct Bench {
  Figures& figures;
  const Timing& timing;
  Device& device;
  int ordinal;  // the device is the current one
  Amounts amounts;
};

std::string size_name(std::size_t bytes);
// The bandwidth of copies from locked pages, in bytes per second.
double rate_to_device(const Timing& timing, Bytes from, std::byte* to);
// The bandwidth of copies on the device, bytes read plus bytes written. Also a figure.
double rate_on_device(const Bench& bench);

void measure_copies(const Bench& bench);
void measure_expand(const Bench& bench);
void measure_slots(const Bench& bench);
void measure_bus(const Bench& bench);

// Through the interface that lanes use.
void measure_submitting(const Bench& bench);
void measure_parts(const Bench& bench);
void measure_slabs(const Bench& bench);
void measure_timeline(const Bench& bench);

}  // namespace millrace::bench
