// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/gpu/cuda/consumer.h"

namespace millrace::test {

namespace {

class HostConsumer : public Consumer {
 public:
  DeviceStream stream() override { return nullptr; }
  std::vector<std::byte> fetch(const void* from, std::size_t bytes) override {
    std::vector<std::byte> fetched(bytes);
    if (bytes > 0) std::memcpy(fetched.data(), from, bytes);
    return fetched;
  }
};

}  // namespace

std::unique_ptr<Consumer> host_consumer() { return std::make_unique<HostConsumer>(); }

}  // namespace millrace::test
