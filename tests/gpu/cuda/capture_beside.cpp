// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/cuda/capture_beside.h"

#include <cuda_runtime_api.h>

namespace millrace::test {

bool CaptureBeside::end() {
  if (!thread_.joinable()) return whole_;
  ending_.set_value();
  thread_.join();
  return whole_;
}

void CaptureBeside::capture() {
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

}  // namespace millrace::test
