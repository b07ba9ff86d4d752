// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/bytes.h"
#include "gpu/host/device_reader.h"

namespace millrace::cuda {

// Copies memory of a device to the host, on a stream of its own, for programs that do not use CUDA
// themselves:
//
//   worker.use_on(batch, fetcher.stream());
//   fetcher.start(batch.device()->tensor, tensor);
//   fetcher.wait();                            // now `tensor` may be used
//
// Leaves the thread's current device as a DeviceReader does. All functions throw DeviceFailure.
// Confined to one thread.
class Fetcher {
 public:
  virtual ~Fetcher() = default;
  virtual DeviceStream stream() const = 0;
  // Enqueues a copy. `to` must exist, and must not be used, until wait() or the destructor returns,
  // which waits too.
  virtual void start(const void* from, MutableBytes to) = 0;
  // Waits for everything that is on the stream.
  virtual void wait() = 0;
};

// A fetcher of the device with this number. Throws DeviceFailure, in a build without CUDA always.
std::unique_ptr<Fetcher> make_fetcher(int ordinal);

}  // namespace millrace::cuda
