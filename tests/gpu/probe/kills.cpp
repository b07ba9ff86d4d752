// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <unistd.h>

#include <chrono>

#include "tests/gpu/probe/gate.h"
#include "tests/gpu/probe/probes.h"
#include "tests/gpu/probe/report.h"

namespace millrace::probe {

namespace {

using namespace std::chrono_literals;

// Queries an event again and again, and prints the code whenever it changes.
void watch(const cuda::Event& event, Duration how_long) {
  int last = -1;
  const Time begun = Clock::now();
  for (Time now = begun; now - begun < how_long; now = Clock::now()) {
    const cudaError_t code = cudaEventQuery(event.get());
    (void)cudaGetLastError();
    if (code != last)
      say("%8.1f ms: the event is %s", milliseconds(now - begun), cudaGetErrorName(code));
    last = code;
    (void)::poll(nullptr, 0, 1);  // sleeps for a millisecond
  }
}

template <class Call>
void timed(const char* name, const Call& call) {
  const Time begun = Clock::now();
  const cudaError_t code = call();
  say("%s: %s after %.1f ms", name, cudaGetErrorName(code), milliseconds(Clock::now() - begun));
  (void)cudaGetLastError();
}

bool device_works() try {
  const cuda::Stream stream = cuda::make_stream();
  const cuda::Memory memory = cuda::allocate(1 << 20);
  cuda::check(cudaMemsetAsync(memory.get(), 1, 1 << 20, stream.get()), "writing");
  cuda::check(cudaStreamSynchronize(stream.get()), "waiting");
  say("the process that lives on can use the device");
  return true;
} catch (const DeviceFailure& failure) {
  say("the process that lives on can NOT use the device: %s", failure.what());
  return false;
}

[[noreturn]] void wait_to_be_killed() {
  for (;;) ::pause();
}

Duration watched_for(const Settings& settings) { return settings.quick ? Duration(300ms) : 10s; }

}  // namespace

bool probe_killed_worker(const Settings& settings) {
  Peer peer("C");
  Exported exported(64 << 20, 1);
  exported.send(peer.channel());
  (void)peer.channel().receive<bool>();  // its kernel was launched
  say("the worker is killed");
  peer.kill();
  watch(exported.events.front(), watched_for(settings));
  timed("cudaEventDestroy", [&] { return cudaEventDestroy(exported.events.front().release()); });
  timed("cudaFree", [&] { return cudaFree(exported.memory.release()); });
  if (exported.locked)
    timed("cudaHostUnregister", [&] { return cudaHostUnregister(exported.locked.release()); });
  return device_works();
}

void peer_killed_worker(Channel& channel) {
  const Opened opened(channel);
  Gate gate(60s);
  gate.hold(opened.stream.get(), 1);
  cuda::check(cudaEventRecord(opened.events.front().get(), opened.stream.get()), "recording");
  channel.send(true);
  wait_to_be_killed();
}

bool probe_killed_service(const Settings& settings) {
  Peer peer("D");
  peer.channel().send(std::size_t{settings.quick ? 64u : 1024u} << 20);
  Opened opened(peer.channel());
  (void)peer.channel().receive<bool>();  // its copies were started
  say("the service is killed");
  peer.kill();
  watch(opened.events.front(), watched_for(settings));
  const bool works = device_works();
  timed("cudaEventDestroy", [&] { return cudaEventDestroy(opened.events.front().release()); });
  timed("cudaIpcCloseMemHandle", [&] { return cudaIpcCloseMemHandle(opened.memory.release()); });
  return device_works() && works;
}

void peer_killed_service(Channel& channel) {
  constexpr int copies = 8;  // so that one is under way when the signal comes
  const auto bytes = channel.receive<std::size_t>();
  const Exported exported(bytes, 1);
  exported.send(channel);
  for (int i = 0; i < copies; ++i)
    cuda::check(cudaMemcpyAsync(exported.memory.get(), exported.pages.bytes().data(), bytes,
                                cudaMemcpyHostToDevice, exported.stream.get()),
                "copying");
  cuda::check(cudaEventRecord(exported.events.front().get(), exported.stream.get()), "recording");
  channel.send(true);
  wait_to_be_killed();
}

}  // namespace millrace::probe
