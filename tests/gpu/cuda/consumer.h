// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "gpu/host/device_reader.h"

namespace millrace::test {

// A model's stream on a device, to look at what lies there.
class Consumer {
 public:
  virtual ~Consumer() = default;
  virtual DeviceStream stream() = 0;
  // Of the device's memory, once the stream has got here.
  virtual std::vector<std::byte> fetch(const void* from, std::size_t bytes) = 0;
};

// For a device by its name; in consumer_absent.cpp or consumer_cuda.cpp, as the tests are built.
std::unique_ptr<Consumer> consumer_on(std::string_view device);

// The host's, which has no stream.
std::unique_ptr<Consumer> host_consumer();

}  // namespace millrace::test
