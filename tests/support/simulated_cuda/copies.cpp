// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "tests/support/simulated_cuda/breaches.h"
#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/copies.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/location.h"
#include "tests/support/simulated_cuda/streams.h"

namespace millrace::test::simulated_cuda {

namespace {

std::atomic<std::uint64_t> pageable{0};

bool on_device(const Location& location) { return location.kind == Location::Kind::device; }

// True if source and target match the kind of the copy.
bool fits(cudaMemcpyKind kind, const Location& to, const Location& from) {
  switch (kind) {
    case cudaMemcpyHostToHost: return !on_device(to) && !on_device(from);
    case cudaMemcpyHostToDevice: return on_device(to) && !on_device(from);
    case cudaMemcpyDeviceToHost: return !on_device(to) && on_device(from);
    case cudaMemcpyDeviceToDevice: return on_device(to) && on_device(from);
    default: return kind == cudaMemcpyDefault;
  }
}

// Copies in two parts with a pause between them, so that a reader that does not wait sees half.
void copy_bytes(Stream& stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t half = bytes / 2;
  std::memcpy(to, from, half);
  stream.pause();
  if (!stream.dead()) std::memcpy(to + half, from + half, bytes - half);
}

void count_pageable(const void* end, std::size_t bytes) {
  if (bytes > 0 && location_of(end, bytes).kind == Location::Kind::pageable)
    pageable.fetch_add(1, std::memory_order_relaxed);
}

void add_use(Operation& operation, const Location& location) {
  if (location.uses) operation.uses.emplace_back(*location.uses);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t handle) {
  if (bytes == 0) return cudaSuccess;
  Stream* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  const Location target = location_of(to, bytes), source = location_of(from, bytes);
  if (target.error != cudaSuccess) return target.error;
  if (source.error != cudaSuccess) return source.error;
  if (!fits(kind, target, source))
    return breach(Breach::outside_allocation, "no memory of the kind that the copy speaks of",
                  cudaErrorInvalidValue);
  for (const Location* location : {&target, &source})
    if (on_device(*location) && location->device != stream->device())
      (void)breach(Breach::wrong_device, "memory of another than the stream's", cudaSuccess);

  auto operation = std::make_unique<Operation>(
      Operation::Kind::copy,
      [target, source, bytes](Stream& on) { copy_bytes(on, target.at, source.at, bytes); });
  add_use(*operation, target);
  add_use(*operation, source);
  stream->put(std::move(operation));
  return death_of(stream->device());
}

cudaError_t set(void* to, int value, std::size_t bytes, cudaStream_t handle) {
  if (bytes == 0) return cudaSuccess;
  Stream* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  const Location target = location_on(stream->device(), to, bytes);
  if (target.error != cudaSuccess) return target.error;
  auto operation = std::make_unique<Operation>(
      Operation::Kind::kernel,
      [target, value, bytes](Stream&) { std::memset(target.at, value, bytes); });
  add_use(*operation, target);
  stream->put(std::move(operation));
  return death_of(stream->device());
}

}  // namespace

std::uint64_t pageable_copies() { return pageable.load(std::memory_order_relaxed); }

void forget_copies() { pageable = 0; }

}  // namespace millrace::test::simulated_cuda

using namespace millrace::test::simulated_cuda;

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&] {
    const cudaError_t error = copy(to, from, bytes, kind, stream);
    if (error != cudaSuccess) return error;
    count_pageable(to, bytes);
    count_pageable(from, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&] {
    const cudaError_t error = copy(to, from, bytes, kind, cudaStreamLegacy);
    return error != cudaSuccess ? error : find_stream(cudaStreamLegacy)->wait();
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] { return set(to, value, bytes, stream); });
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return call("cudaMemset", [&] {
    const cudaError_t error = set(to, value, bytes, cudaStreamLegacy);
    return error != cudaSuccess ? error : find_stream(cudaStreamLegacy)->wait();
  });
}

}  // extern "C"
