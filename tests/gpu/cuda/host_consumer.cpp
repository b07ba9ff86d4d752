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
    start_fetch(from, fetched);
    return fetched;
  }
  void start_fetch(const void* from, MutableBytes to) override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }
  void wait() override {}
};

}  // namespace

std::unique_ptr<Consumer> host_consumer() { return std::make_unique<HostConsumer>(); }

}  // namespace millrace::test
