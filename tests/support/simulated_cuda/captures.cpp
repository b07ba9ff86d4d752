// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/captures.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/streams.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

struct Capture {
  std::thread::id thread;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool broken = false;
};

struct Captures {
  std::mutex mutex;
  std::map<const Stream*, Capture> under_way;
  std::uintptr_t graphs = 0;
};

Captures& captures() {
  static Captures& captures = *new Captures;
  return captures;
}

thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

bool prohibits(const Capture& capture) {
  if (mode_of_thread == cudaStreamCaptureModeRelaxed) return false;
  if (capture.thread == std::this_thread::get_id())
    return capture.mode != cudaStreamCaptureModeRelaxed;
  return mode_of_thread == cudaStreamCaptureModeGlobal &&
         capture.mode == cudaStreamCaptureModeGlobal;
}

cudaError_t begin(cudaStream_t handle, cudaStreamCaptureMode mode) {
  Stream* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (handle == cudaStreamLegacy) return cudaErrorStreamCaptureUnsupported;
  const Locked locked(captures().mutex);
  if (!captures().under_way.try_emplace(stream, Capture{std::this_thread::get_id(), mode}).second)
    return cudaErrorIllegalState;
  return cudaSuccess;
}

cudaError_t end(cudaStream_t handle, cudaGraph_t* graph) {
  Stream* stream = find_stream(handle);
  if (!stream || !graph) return cudaErrorInvalidValue;
  *graph = nullptr;
  const Locked locked(captures().mutex);
  const auto found = captures().under_way.find(stream);
  if (found == captures().under_way.end()) return cudaErrorStreamCaptureUnmatched;
  const Capture capture = found->second;
  if (capture.mode != cudaStreamCaptureModeRelaxed && capture.thread != std::this_thread::get_id())
    return cudaErrorStreamCaptureWrongThread;
  captures().under_way.erase(found);
  if (capture.broken) return cudaErrorStreamCaptureInvalidated;
  *graph = reinterpret_cast<cudaGraph_t>(++captures().graphs);
  return cudaSuccess;
}

}  // namespace

cudaError_t refused_by_captures() {
  const Locked locked(captures().mutex);
  cudaError_t error = cudaSuccess;
  for (auto& [stream, capture] : captures().under_way)
    if (prohibits(capture)) {
      capture.broken = true;
      error = cudaErrorStreamCaptureUnsupported;
    }
  return error;
}

void forget_captures() {
  const Locked locked(captures().mutex);
  captures().under_way.clear();
  mode_of_thread = cudaStreamCaptureModeGlobal;
}

}  // namespace millrace::test::simulated_cuda

using namespace millrace::test::simulated_cuda;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&] { return begin(stream, mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [&] { return end(stream, graph); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", WhenDead::answer, [&] {
    std::swap(mode_of_thread, *mode);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t) {
  return call("cudaGraphDestroy", WhenDead::answer, [] { return cudaSuccess; });
}

}  // extern "C"
