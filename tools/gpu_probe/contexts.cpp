// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include "base/time.h"
#include "tools/gpu_probe/probes.h"
#include "tools/gpu_probe/report.h"

namespace millrace::probe {

namespace {

// Makes the context of this process, and returns how long that took.
Duration make_context() {
  const Time begun = Clock::now();
  cuda::check(cudaFree(nullptr), "making a context");
  return Clock::now() - begun;
}

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "querying the memory of a device");
  return free;
}

}  // namespace

bool probe_contexts(const Settings&) {
  Peer peer("X");
  const Duration first = make_context();
  const std::size_t before = free_memory();
  peer.channel().send(true);
  const auto second = peer.channel().receive<Duration>();
  const std::size_t after = free_memory();
  peer.channel().send(true);
  const std::size_t taken = before - std::min(before, after);
  say("the context of this process took %.0f ms, that of another one %.0f ms", milliseconds(first),
      milliseconds(second));
  say("means: a service or worker needs %.0f MiB of the device, and %.1f s, before its first slab",
      static_cast<double>(taken) / (1 << 20), milliseconds(second) / 1e3);
  return true;
}

void peer_of_contexts(Channel& channel) {
  (void)channel.receive<bool>();
  channel.send(make_context());
  (void)channel.receive<bool>();  // its memory was measured
}

}  // namespace millrace::probe
