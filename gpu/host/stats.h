// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/stats.h"
#include "gpu/host/device_fault.h"

namespace millrace {

// Copies of one pipeline's batches to one device. The pipeline's home thread writes it.
struct CopyStats {
  Counter copies;
  Counter bytes;
  Histogram took{buckets::fast};  // by the device's clock; of some copies only
  Labelled<Counter, DeviceFault> faults;
};

// The slabs of one pipeline's lanes on the host. Its home thread writes it.
struct SlabStats {
  Gauge used, free;               // bytes whose pages are locked, for a device
  Gauge pageable;                 // bytes for a device whose pages could not be locked
  Histogram wait{buckets::fast};  // of a batch that could have closed, for a slab
  Counter exhausted;              // batches that had to wait for one
};

}  // namespace millrace
