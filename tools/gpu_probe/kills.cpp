// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "tools/gpu_probe/aftermath.h"
#include "tools/gpu_probe/gate.h"
#include "tools/gpu_probe/probes.h"

namespace millrace::probe {

namespace {

using namespace std::chrono_literals;

constexpr auto longest_kernel = 4s;
constexpr int queries = 1'000;

// Queries the events of a worker. True if all have passed at each query.
bool have_passed(const std::vector<cuda::Event>& events, const char* when) {
  int failed = 0;
  cudaError_t code = cudaSuccess;
  Duration longest{};
  for (int i = 0; i < queries; ++i) {
    const Time begun = Clock::now();
    const cudaError_t error =
        cudaEventQuery(events[static_cast<std::size_t>(i) % events.size()].get());
    longest = std::max(longest, Duration(Clock::now() - begun));
    (void)cudaGetLastError();
    if (error == cudaSuccess) continue;
    ++failed;
    code = error;
  }
  say("%d queries %s: %d without success (%s), the longest took %.1f us", queries, when, failed,
      cudaGetErrorName(code), microseconds(longest));
  return failed == 0;
}

}  // namespace

bool probe_killed_worker(const Settings& settings) {
  Peer peer("C");
  Exported exported(64 << 20, 1);
  exported.send(peer.channel());
  (void)peer.channel().receive<bool>();  // its kernel was launched
  const Time killed = Clock::now();
  peer.kill();
  say("the worker was killed, and gone after %.0f ms; its kernel takes at most %lld s",
      milliseconds(Clock::now() - killed), static_cast<long long>(longest_kernel.count()));
  const cudaError_t code = watch(exported.events.front(), settings.quick ? Duration(300ms) : 2s);
  timed("cudaEventDestroy", [&] { return cudaEventDestroy(exported.events.front().release()); });
  timed("cudaFree", [&] { return cudaFree(exported.memory.release()); });
  if (exported.locked)
    timed("cudaHostUnregister", [&] { return cudaHostUnregister(exported.locked.release()); });
  const bool works = device_works();
  if (works)
    say("means: decision 12 holds: a killed worker leaves its event %s, and costs nothing else",
        cudaGetErrorName(code));
  else
    say("means: decision 12 is not enough: a killed worker takes the device from the service");
  return works;
}

void peer_killed_worker(Channel& channel) {
  const Opened opened(channel);
  Gate gate(longest_kernel);
  gate.hold(opened.stream.get(), 1);
  cuda::check(cudaEventRecord(opened.events.front().get(), opened.stream.get()), "recording");
  channel.send(true);
  wait_to_be_killed();
}

bool probe_ended_worker(const Settings&) {
  constexpr std::size_t bytes = 2 << 20, count = 8;
  Peer peer("C2");
  const Exported exported(bytes, count);
  exported.send(peer.channel());
  (void)peer.channel().receive<bool>();  // it has closed all handles
  const bool closed = have_passed(exported.events, "after the worker has closed its handles");
  peer.channel().send(true);
  peer.wait();
  const bool ended = have_passed(exported.events, "after its end");
  if (closed && ended)
    say("means: decision 12 holds: a worker may leave while the service has slabs to query");
  else
    say("means: decision 12 is not enough: a worker must keep its events until all slabs are free");
  return closed && ended;
}

// As ~CudaReader: waits for its work before it closes anything.
void peer_ended_worker(Channel& channel) {
  {
    const Opened opened(channel);
    for (const cuda::Event& event : opened.events) {
      cuda::check(cudaMemsetAsync(opened.memory.get(), 1, 1 << 20, opened.stream.get()), "writing");
      cuda::check(cudaEventRecord(event.get(), opened.stream.get()), "recording");
    }
    cuda::check(cudaStreamSynchronize(opened.stream.get()), "waiting");
  }
  channel.send(true);
  (void)channel.receive<bool>();
}

}  // namespace millrace::probe
