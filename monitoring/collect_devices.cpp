// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "monitoring/collect.h"

namespace millrace {

namespace {

Labels labels_of(const DeviceSource& device) { return {{"device", device.name}}; }

Shards<SlabStats> slabs_of(const Sources& sources) {
  Shards<SlabStats> slabs;
  for (const PipelineSource& pipeline : sources.pipelines)
    for (const LaneStats* lane : pipeline.lanes) slabs.push_back(&lane->slabs);
  return slabs;
}

// The copies of all pipelines to the device with this index.
Shards<CopyStats> copies_of(const Sources& sources, std::size_t index) {
  Shards<CopyStats> copies;
  for (const PipelineSource& pipeline : sources.pipelines)
    for (const LaneStats* lane : pipeline.lanes) copies.push_back(&lane->copies.at(index));
  return copies;
}

// Calls `add` with the labels and copies of each device.
template <class Add>
void add_devices(const Sources& sources, Add add) {
  for (std::size_t i = 0; i < sources.devices.size(); ++i)
    add(labels_of(sources.devices[i]), copies_of(sources, i));
}

void collect_copies(const Sources& sources, Families& into) {
  into.begin_counter("millrace_h2d_copies_total", "Host-to-device copies finished.");
  add_devices(sources, [&](const Labels& labels, const Shards<CopyStats>& copies) {
    into.add(labels, sum(copies, &CopyStats::copies));
  });
  into.begin_counter("millrace_h2d_copied_bytes_total", "Bytes copied from host to device.");
  add_devices(sources, [&](const Labels& labels, const Shards<CopyStats>& copies) {
    into.add(labels, sum(copies, &CopyStats::bytes));
  });
  into.begin_histogram("millrace_h2d_copy_duration_seconds",
                       "Duration of a host-to-device copy, measured by CUDA events. One copy in 16 "
                       "is timed.");
  add_devices(sources, [&](const Labels& labels, const Shards<CopyStats>& copies) {
    into.add(labels, histograms(copies, &CopyStats::took), per_second);
  });
  into.begin_counter("millrace_device_errors_total", "Device errors.");
  add_devices(sources, [&](const Labels& labels, const Shards<CopyStats>& copies) {
    add_each(into, labels, "error", copies, &CopyStats::faults);
  });
}

void collect_slabs(const Shards<SlabStats>& slabs, Families& into) {
  into.begin_gauge("millrace_pinned_pool_bytes", "Pinned host memory by state.");
  into.add({{"state", "used"}}, sum(slabs, &SlabStats::used));
  into.add({{"state", "free"}}, sum(slabs, &SlabStats::free));
  into.begin_gauge("millrace_pageable_slab_bytes",
                   "Bytes of slabs for devices whose pages could not be locked.");
  into.add({}, sum(slabs, &SlabStats::pageable));
  into.begin_histogram("millrace_pinned_pool_acquire_wait_seconds",
                       "Time that a batch, otherwise ready to close, waited for a slab.");
  into.add({}, histograms(slabs, &SlabStats::wait), per_second);
  into.begin_counter("millrace_pinned_pool_exhausted_total",
                     "Batches that had to wait for a slab.");
  into.add({}, sum(slabs, &SlabStats::exhausted));
}

}  // namespace

void collect_devices(const Sources& sources, Families& into) {
  collect_copies(sources, into);
  into.begin_gauge("millrace_device_healthy", "1 while the device may be used.");
  for (const DeviceSource& device : sources.devices)
    into.add(labels_of(device), sum(device.stats, &DeviceStats::healthy));
  collect_slabs(slabs_of(sources), into);
}

}  // namespace millrace
