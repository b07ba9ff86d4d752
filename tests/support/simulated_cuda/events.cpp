// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/events.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/support/simulated_cuda/breaches.h"
#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/event_page.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/streams.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

struct Events {
  std::mutex mutex;
  // By handle. Handles are never reused.
  std::map<std::uintptr_t, Event*> live;
  std::vector<std::unique_ptr<Event>> every;
  std::uintptr_t next = 0x8000'0000;
};

Events& events() {
  static Events& events = *new Events;
  return events;
}

std::int64_t now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Event* live_event(cudaEvent_t handle) {
  const Locked locked(events().mutex);
  const auto found = events().live.find(reinterpret_cast<std::uintptr_t>(handle));
  if (found != events().live.end()) return found->second;
  (void)breach(Breach::use_after_free, "an event that does not exist", cudaSuccess);
  return nullptr;
}

cudaError_t create(cudaEvent_t* handle, unsigned flags) {
  constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  const bool shared = (flags & cudaEventInterprocess) != 0;
  if (!handle || (flags & ~known) != 0 || (shared && (flags & cudaEventDisableTiming) == 0))
    return cudaErrorInvalidValue;
  auto event = std::make_unique<Event>();
  event->device = current_device();
  event->flags = flags;
  if (!make_page(*event)) return cudaErrorMemoryAllocation;
  *handle = add(std::move(event));
  return cudaSuccess;
}

cudaError_t destroy(cudaEvent_t handle) {
  Event* event = live_event(handle);
  if (!event) return cudaErrorInvalidResourceHandle;
  const Locked locked(events().mutex);
  events().live.erase(reinterpret_cast<std::uintptr_t>(handle));
  if (!event->opened) event->page->destroyed = 1;
  close_page(*event);
  return cudaSuccess;
}

cudaError_t record(cudaEvent_t handle, cudaStream_t stream_handle) {
  Event* event = find_event(handle);
  Stream* stream = find_stream(stream_handle);
  if (!event || !stream) return cudaErrorInvalidResourceHandle;
  if (event->device != stream->device())
    return breach(Breach::wrong_device, "an event of another than the stream's",
                  cudaErrorInvalidResourceHandle);
  const std::uint32_t number = event->page->record();
  stream->put(std::make_unique<Operation>(Operation::Kind::record, [event, number](Stream&) {
    event->passed_at.store(now(), std::memory_order_relaxed);
    event->page->pass(number);
  }));
  return death_of(stream->device());
}

cudaError_t wait(cudaStream_t stream_handle, cudaEvent_t handle) {
  Event* event = find_event(handle);
  Stream* stream = find_stream(stream_handle);
  if (!event || !stream) return cudaErrorInvalidResourceHandle;
  const std::uint32_t number = event->page->last.load(std::memory_order_relaxed);
  if (number > 0)
    stream->put(std::make_unique<Operation>(Operation::Kind::wait, [event, number](Stream& on) {
      event->page->wait(number, [&on] { return on.dead(); });
    }));
  return death_of(stream->device());
}

cudaError_t query(cudaEvent_t handle) {
  const Event* event = find_event(handle);
  if (!event) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t death = death_of(event->device)) return death;
  std::uint32_t number = event->page->last.load(std::memory_order_relaxed);
  if (event->shared() && number > 0 && query_is_stale()) --number;
  return event->page->has_passed(number) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t synchronize(cudaEvent_t handle) {
  const Event* event = find_event(handle);
  if (!event) return cudaErrorInvalidResourceHandle;
  const std::uint32_t number = event->page->last.load(std::memory_order_relaxed);
  event->page->wait(number, [event] { return death_of(event->device) != cudaSuccess; });
  return death_of(event->device);
}

cudaError_t elapsed(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  const Event *from = find_event(begin), *to = find_event(end);
  if (!from || !to || !ms || !from->timed() || !to->timed()) return cudaErrorInvalidResourceHandle;
  if (from->device != to->device) return cudaErrorInvalidResourceHandle;
  for (const Event* event : {from, to}) {
    const std::uint32_t number = event->page->last.load(std::memory_order_relaxed);
    if (number == 0) return cudaErrorInvalidResourceHandle;
    if (!event->page->has_passed(number)) return cudaErrorNotReady;
  }
  const std::chrono::duration<float, std::milli> took =
      std::chrono::nanoseconds(to->passed_at.load(std::memory_order_relaxed) -
                               from->passed_at.load(std::memory_order_relaxed));
  *ms = took.count();
  return cudaSuccess;
}

}  // namespace

cudaEvent_t add(std::unique_ptr<Event> event) {
  const Locked locked(events().mutex);
  const std::uintptr_t handle = events().next += 0x10;
  events().live[handle] = event.get();
  events().every.push_back(std::move(event));
  return reinterpret_cast<cudaEvent_t>(handle);
}

Event* find_event(cudaEvent_t handle) {
  Event* event = live_event(handle);
  if (event && event->opened && event->page->destroyed.load(std::memory_order_relaxed) != 0)
    (void)breach(Breach::destroyed_elsewhere, "an event that was opened here", cudaSuccess);
  return event;
}

std::size_t events_left() {
  const Locked locked(events().mutex);
  return static_cast<std::size_t>(std::ranges::count_if(events().live, [](const auto& live) {
    return death_of(live.second->device) == cudaSuccess;
  }));
}

void forget_events() {
  const Locked locked(events().mutex);
  for (const auto& event : events().every) drop_page(*event);
  events().every.clear();
  events().live.clear();
}

}  // namespace millrace::test::simulated_cuda

using namespace millrace::test::simulated_cuda;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&] { return create(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", WhenDead::let_go, [&] { return destroy(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&] { return record(event, stream); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call("cudaStreamWaitEvent", [&] { return wait(stream, event); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [&] { return query(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&] { return synchronize(event); });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&] { return elapsed(ms, begin, end); });
}

}  // extern "C"
