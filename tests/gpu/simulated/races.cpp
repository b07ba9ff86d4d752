// SPDX-License-Identifier: Apache-2.0
// Plays the scene that its argument names. Some are data races for ThreadSanitizer, others are not.
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>

#include "tests/support/simulated_cuda/simulated_cuda.h"

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
    (void)cudaDeviceSynchronize();
    (void)cudaHostUnregister(page.data());
  }

  void copy_page() { must(cudaMemcpyAsync(device, page.data(), bytes, cudaMemcpyDefault, first)); }
  void copy_on() { must(cudaMemcpyAsync(other, device, bytes, cudaMemcpyDefault, second)); }
  void record() { must(cudaEventRecord(event, first)); }
  void wait_on_second() { must(cudaStreamWaitEvent(second, event, 0)); }
  void wait() { must(cudaEventSynchronize(event)); }
  void write_page() { page.fill('x'); }
  void put_count(cudaStream_t on) {
    must(cudaLaunchHostFunc(
        on, [](void* scene) { ++static_cast<Scene*>(scene)->count; }, this));
  }

  // Sets the flag when the stream has reached this operation. The flag orders no other accesses.
  void put_flag(cudaStream_t on) {
    const auto raise = [](void* scene) {
      static_cast<Scene*>(scene)->flag.store(true, std::memory_order_relaxed);
    };
    must(cudaLaunchHostFunc(on, raise, this));
  }

  // Runs two functions in two threads, one after the other. ThreadSanitizer does not see this
  // order.
  void in_turn(const std::function<void()>& one, const std::function<void()>& two) {
    std::atomic<bool> ready = false;
    std::jthread later([&] {
      while (!ready.load(std::memory_order_relaxed)) {
      }
      two();
    });
    one();
    ready.store(true, std::memory_order_relaxed);
  }

  alignas(bytes) std::array<char, bytes> page{};
  void *device = nullptr, *other = nullptr;
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  int count = 0;
  std::atomic<bool> flag = false;
};

using Play = std::function<void(Scene&)>;

const std::map<std::string, Play> out_of_order = {
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
    {"another stream waited before the record",
     [](Scene& s) {
       s.copy_page();
       s.wait_on_second();
       s.record();
       s.copy_on();
     }},
    {"another stream waited for an earlier record",
     [](Scene& s) {
       s.record();
       s.copy_page();
       s.wait_on_second();
       s.copy_on();
     }},
    {"what a stream did is read at once",
     [](Scene& s) {
       s.put_count(s.first);
       if (s.count > 1) std::abort();
     }},
    {"two threads share what they give to one stream",
     [](Scene& s) {
       s.in_turn(
           [&] {
             s.count = 1;
             s.record();
           },
           [&] {
             s.record();
             s.count = 2;
           });
     }},
    {"two threads only call CUDA both",
     [](Scene& s) {
       s.in_turn(
           [&] {
             s.count = 1;
             (void)cudaEventQuery(s.event);
             (void)cudaStreamQuery(s.first);
           },
           [&] {
             (void)cudaStreamQuery(s.first);
             (void)cudaEventQuery(s.event);
             s.count = 2;
           });
     }},
};

const std::map<std::string, Play> in_order = {
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
    {"a page is written behind its stream",
     [](Scene& s) {
       s.copy_page();
       must(cudaStreamSynchronize(s.first));
       s.write_page();
     }},
    {"a page is written behind the device",
     [](Scene& s) {
       s.copy_page();
       must(cudaDeviceSynchronize());
       s.write_page();
     }},
    {"another stream waited",
     [](Scene& s) {
       s.copy_page();
       s.record();
       s.wait_on_second();
       s.copy_on();
     }},
    {"what a stream did is read behind an event",
     [](Scene& s) {
       s.put_count(s.first);
       s.record();
       s.wait();
       if (s.count != 1) std::abort();
     }},
    {"a thread goes on behind another's event",
     [](Scene& s) {
       s.in_turn(
           [&] {
             s.put_count(s.first);
             s.record();
           },
           [&] {
             s.wait();
             if (s.count != 1) std::abort();
           });
     }},
    {"a device dies under a copy",
     [](Scene& s) {
       s.copy_page();
       s.put_flag(s.first);
       for (int i = 0; i < 100; ++i) s.copy_page();
       while (!s.flag.load(std::memory_order_relaxed)) {
       }
       millrace::test::simulated_cuda::kill_device(cudaErrorECCUncorrectable);
       if (cudaStreamQuery(s.first) == cudaSuccess) std::abort();
       s.write_page();
     }},
};

}  // namespace

int main(int, char** arguments) {
  for (const auto* scenes : {&out_of_order, &in_order})
    if (const auto found = scenes->find(arguments[1]); found != scenes->end()) {
      Scene scene;
      found->second(scene);
      return 0;
    }
  return 2;
}
