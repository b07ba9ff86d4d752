// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_probe/gate.h"

#include <memory>

#include "gpu/cuda/calls.h"

namespace millrace::probe {

Gate::Gate(Duration longest) : longest_(longest) {
  void* pages = nullptr;
  cuda::check(cudaHostAlloc(&pages, sizeof(GateWords), cudaHostAllocMapped), "locking pages");
  words_ = std::construct_at(static_cast<GateWords*>(pages));
  const cuda::Stream stream = cuda::make_stream();
  hold(stream.get(), 0);  // is open: it only loads the kernel
  cuda::check(cudaStreamSynchronize(stream.get()), "loading a kernel");
}

void Gate::hold(cudaStream_t stream, std::uint32_t number) {
  put_gate(stream, const_cast<GateWords*>(words_), number, longest_);
}

void Gate::open(std::uint32_t number) { words_->opened = number; }

bool Gate::has_timed_out(std::uint32_t first) const {
  return static_cast<std::int32_t>(words_->timed_out - first) >= 0;
}

}  // namespace millrace::probe
