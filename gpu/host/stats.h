// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/stats.h"
#include "gpu/host/device_fault.h"

namespace millrace {

// The copies of one pipeline's batches to one device. Written by the pipeline's home thread.
struct CopyStats {
  Counter copies;
  Counter bytes;
  Histogram took{buckets::fast};  // duration by the device's clock; of some copies only
  Labelled<Counter, DeviceFault> faults;
};

// The slabs of one pipeline's lanes in host memory. Written by the pipeline's home thread.
struct SlabStats {
  Gauge used, free;               // bytes of slabs for a device, with locked pages
  Gauge pageable;                 // bytes of slabs for a device whose pages could not be locked
  Histogram wait{buckets::fast};  // time that a batch that could have closed waited for a slab
  Counter exhausted;              // batches that waited for a slab
};

}  // namespace millrace
