// SPDX-License-Identifier: Apache-2.0
// Plays the scene that its argument names: a data race for ThreadSanitizer, or none.
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace {

constexpr std::size_t bytes = 4096;

void must(cudaError_t error) {
  if (error != cudaSuccess) std::abort();
}

struct Scene {
  Scene() {
    must(cudaHostRegister(page.data(), bytes, 0));
    must(cudaMalloc(&device, bytes));
    must(cudaMalloc(&other, bytes));
    for (cudaStream_t* stream : {&first, &second})
      must(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  ~Scene() {
    for (cudaStream_t stream : {first, second}) (void)cudaStreamSynchronize(stream);
    (void)cudaHostUnregister(page.data());
  }

  void copy_page() { must(cudaMemcpyAsync(device, page.data(), bytes, cudaMemcpyDefault, first)); }
  void copy_on() { must(cudaMemcpyAsync(other, device, bytes, cudaMemcpyDefault, second)); }
  void record() { must(cudaEventRecord(event, first)); }
  void wait_on_second() { must(cudaStreamWaitEvent(second, event, 0)); }
  void wait() { must(cudaEventSynchronize(event)); }
  void write_page() { page.fill('x'); }

  // Writes and calls CUDA in two threads, one after the other. ThreadSanitizer sees no such order.
  void call_in_two_threads() {
    std::atomic<bool> ready = false;
    std::jthread later([&] {
      while (!ready.load(std::memory_order_relaxed)) {
      }
      (void)cudaEventQuery(event);
      write_page();
    });
    write_page();
    (void)cudaEventQuery(event);
    ready.store(true, std::memory_order_relaxed);
  }

  alignas(bytes) std::array<char, bytes> page{};
  void *device = nullptr, *other = nullptr;
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
};

const std::map<std::string, std::function<void(Scene&)>> scenes = {
    {"a page is written while it is copied",
     [](Scene& s) {
       s.copy_page();
       s.write_page();
     }},
    {"an earlier record was waited for",
     [](Scene& s) {
       s.record();
       s.copy_page();
       s.wait();
       s.write_page();
     }},
    {"another stream did not wait",
     [](Scene& s) {
       s.copy_page();
       s.record();
       s.copy_on();
     }},
    {"two threads only call CUDA both", [](Scene& s) { s.call_in_two_threads(); }},
    {"a page is written behind an event",
     [](Scene& s) {
       s.copy_page();
       s.record();
       s.wait();
       s.write_page();
     }},
    {"a page is written once an event has passed",
     [](Scene& s) {
       s.copy_page();
       s.record();
       while (cudaEventQuery(s.event) == cudaErrorNotReady) {
       }
       s.write_page();
     }},
    {"another stream waited",
     [](Scene& s) {
       s.copy_page();
       s.record();
       s.wait_on_second();
       s.copy_on();
     }},
};

}  // namespace

int main(int, char** arguments) {
  const auto found = scenes.find(arguments[1]);
  if (found == scenes.end()) return 2;
  Scene scene;
  found->second(scene);
}
