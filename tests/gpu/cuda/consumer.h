// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "gpu/host/device_reader.h"

namespace millrace::test {

// A model's stream on a device, which reads device memory for tests.
class Consumer {
 public:
  virtual ~Consumer() = default;
  virtual DeviceStream stream() = 0;
  // Copies device memory to the host, after the work that is on the stream now.
  virtual std::vector<std::byte> fetch(const void* from, std::size_t bytes) = 0;
  // Puts such a copy on the stream. `to` must not be used before wait().
  virtual void start_fetch(const void* from, MutableBytes to) = 0;
  // Waits for the work that is on the stream now.
  virtual void wait() = 0;
};

// A consumer on a device, given by its name. Defined in consumer_cuda.cpp, or without CUDA in
// consumer_absent.cpp.
std::unique_ptr<Consumer> consumer_on(std::string_view device);

// A consumer on the host. It has no stream.
std::unique_ptr<Consumer> host_consumer();

}  // namespace millrace::test
