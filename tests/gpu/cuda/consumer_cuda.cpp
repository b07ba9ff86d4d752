// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <string>

#include "gpu/cuda/calls.h"
#include "gpu/host/host_device.h"
#include "tests/gpu/cuda/consumer.h"

namespace millrace::test {

namespace {

class CudaConsumer : public Consumer {
 public:
  explicit CudaConsumer(int ordinal) : ordinal_(ordinal) {
    const cuda::OnDevice on(ordinal_);
    stream_ = cuda::make_stream();
  }
  DeviceStream stream() override { return stream_.get(); }
  std::vector<std::byte> fetch(const void* from, std::size_t bytes) override {
    std::vector<std::byte> fetched(bytes);
    start_fetch(from, fetched);
    wait();
    return fetched;
  }
  void start_fetch(const void* from, MutableBytes to) override {
    const cuda::OnDevice on(ordinal_);
    if (to.empty()) return;
    cuda::check(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream_.get()),
                "fetching");
  }
  void wait() override {
    const cuda::OnDevice on(ordinal_);
    cuda::check(cudaStreamSynchronize(stream_.get()), "fetching");
  }

 private:
  int ordinal_;
  cuda::Stream stream_;
};

}  // namespace

std::unique_ptr<Consumer> consumer_on(std::string_view device) {
  if (device == host_device_name) return host_consumer();
  return std::make_unique<CudaConsumer>(
      std::stoi(std::string(device.substr(device.find(':') + 1))));
}

}  // namespace millrace::test
