// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/streams.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/support/simulated_cuda/breaches.h"
#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/settings.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

struct Streams {
  std::mutex mutex;
  // By handle. Handles are never reused.
  std::map<std::uintptr_t, Stream*> made;
  std::map<std::pair<int, std::uintptr_t>, Stream*> of_devices;
  std::vector<Stream*> every;  // including destroyed ones
  std::uintptr_t next = 0x5000;
  std::uint64_t seed = 0;
};

Streams& streams() {
  static Streams& streams = *new Streams;
  return streams;
}

const auto legacy = reinterpret_cast<std::uintptr_t>(cudaStreamLegacy);
const auto per_thread = reinterpret_cast<std::uintptr_t>(cudaStreamPerThread);

// Requires: the mutex is locked.
Stream* start_stream(int device) {
  Streams& all = streams();
  return all.every.emplace_back(new Stream(device, ++all.seed));
}

Stream* stream_of_device(std::uintptr_t handle) {
  Stream*& stream = streams().of_devices[{current_device(), handle}];
  if (!stream) stream = start_stream(current_device());
  return stream;
}

std::vector<Stream*> every_stream() {
  const Locked locked(streams().mutex);
  return streams().every;
}

cudaError_t create(cudaStream_t* stream, unsigned flags) {
  if (!stream || (flags != cudaStreamDefault && flags != cudaStreamNonBlocking))
    return cudaErrorInvalidValue;
  const Locked locked(streams().mutex);
  const std::uintptr_t handle = streams().next += 0x10;
  streams().made[handle] = start_stream(current_device());
  *stream = reinterpret_cast<cudaStream_t>(handle);
  return cudaSuccess;
}

cudaError_t destroy(cudaStream_t handle) {
  Stream* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  const Locked locked(streams().mutex);
  if (streams().made.erase(reinterpret_cast<std::uintptr_t>(handle)) == 0)
    return cudaErrorInvalidResourceHandle;
  stream->close();
  return cudaSuccess;
}

}  // namespace

Stream* find_stream(cudaStream_t stream) {
  auto handle = reinterpret_cast<std::uintptr_t>(stream);
  if (handle == 0) {
    (void)breach(Breach::default_stream, "stream 0 was used", cudaSuccess);
    handle = legacy;
  }
  const Locked locked(streams().mutex);
  if (handle == legacy || handle == per_thread) return stream_of_device(handle);
  const auto found = streams().made.find(handle);
  if (found != streams().made.end()) return found->second;
  (void)breach(Breach::use_after_free, "a stream that does not exist", cudaSuccess);
  return nullptr;
}

void wake_streams() {
  for (Stream* stream : every_stream()) stream->wake();
}

void settle_dead_streams() {
  for (Stream* stream : every_stream())
    if (stream->dead()) stream->settle();
}

std::size_t streams_left() {
  const Locked locked(streams().mutex);
  return static_cast<std::size_t>(
      std::ranges::count_if(streams().made, [](const auto& made) { return !made.second->dead(); }));
}

void forget_streams() {
  for (Stream* stream : every_stream()) {
    stream->hold(false);
    stream->close();
    (void)stream->wait();
    while (!stream->ended()) stream->wake();
  }
  const Locked locked(streams().mutex);
  streams().made.clear();
  streams().of_devices.clear();
  for (Stream* stream : streams().every) delete stream;
  streams().every.clear();
  streams().seed = 0;
}

void hold(void* stream) { find_stream(static_cast<cudaStream_t>(stream))->hold(true); }
void release(void* stream) { find_stream(static_cast<cudaStream_t>(stream))->hold(false); }

}  // namespace millrace::test::simulated_cuda

using namespace millrace::test::simulated_cuda;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&] { return create(stream, flags); });
}

// Priorities are only hints in CUDA, and are ignored here.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return call("cudaStreamCreateWithPriority", [&] { return create(stream, flags); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", WhenDead::let_go, [&] { return destroy(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call("cudaStreamSynchronize", [&] {
    Stream* stream = find_stream(handle);
    return stream ? stream->wait() : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call("cudaStreamQuery", [&] {
    Stream* stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t death = death_of(stream->device())) return death;
    return stream->idle() ? cudaSuccess : cudaErrorNotReady;
  });
}

}  // extern "C"
