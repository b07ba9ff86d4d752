// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/cuda/consumer.h"

#include <cstring>
#include <string>

#include "gpu/host/host_device.h"

namespace millrace::test {

namespace {

class HostFetcher : public cuda::Fetcher {
 public:
  DeviceStream stream() const override { return nullptr; }
  void start(const void* from, MutableBytes to) override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }
  void wait() override {}
};

}  // namespace

std::vector<std::byte> fetch(cuda::Fetcher& consumer, const void* from, std::size_t bytes) {
  std::vector<std::byte> fetched(bytes);
  consumer.start(from, fetched);
  consumer.wait();
  return fetched;
}

std::unique_ptr<cuda::Fetcher> consumer_on(std::string_view device) {
  if (device == host_device_name) return std::make_unique<HostFetcher>();
  return cuda::make_fetcher(std::stoi(std::string(device.substr(device.find(':') + 1))));
}

}  // namespace millrace::test
