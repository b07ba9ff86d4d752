// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <future>
#include <thread>

namespace millrace::test {

// Another thread that captures a graph while this object lives, in the mode of torch.cuda.graph.
class CaptureBeside {
 public:
  CaptureBeside() { begun_.get_future().wait(); }
  ~CaptureBeside() { (void)end(); }
  CaptureBeside(const CaptureBeside&) = delete;
  CaptureBeside& operator=(const CaptureBeside&) = delete;

  // Ends the capture. True if no call of this process has broken it.
  bool end() {
    if (!thread_.joinable()) return whole_;
    ending_.set_value();
    thread_.join();
    return whole_;
  }

 private:
  void capture() {
    cudaStream_t stream = nullptr;
    (void)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    begun_.set_value();
    ending_.get_future().wait();
    cudaGraph_t graph = nullptr;
    whole_ = cudaStreamEndCapture(stream, &graph) == cudaSuccess;
    if (whole_) (void)cudaGraphDestroy(graph);
    (void)cudaStreamDestroy(stream);
  }

  std::promise<void> begun_, ending_;
  bool whole_ = false;
  std::thread thread_{[this] { capture(); }};
};

}  // namespace millrace::test
