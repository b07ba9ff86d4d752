// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/fetcher.h"

#include "gpu/cuda/calls.h"

namespace millrace::cuda {

namespace {

class CudaFetcher final : public Fetcher {
 public:
  explicit CudaFetcher(int ordinal) : ordinal_(ordinal) {
    const OnDevice on(ordinal_);
    stream_ = make_stream();
  }
  ~CudaFetcher() override {
    const Relaxed relaxed;
    ignore(cudaStreamSynchronize(stream_.get()));
  }
  DeviceStream stream() const override { return stream_.get(); }
  void start(const void* from, MutableBytes to) override {
    if (to.empty()) return;
    const OnDevice on(ordinal_);
    check(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream_.get()),
          "copying from the device");
  }
  void wait() override {
    const OnDevice on(ordinal_);
    check(cudaStreamSynchronize(stream_.get()), "copying from the device");
  }

 private:
  int ordinal_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<Fetcher> make_fetcher(int ordinal) {
  return std::make_unique<CudaFetcher>(ordinal);
}

}  // namespace millrace::cuda
