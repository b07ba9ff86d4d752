// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_timing.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <random>

namespace millrace::bench {

namespace {

using cuda::check;

std::vector<std::uint32_t> random_words(std::size_t bytes) {
  std::mt19937 random(1);
  std::vector<std::uint32_t> words((bytes + 3) / 4);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  return words;
}

constexpr std::size_t block = std::size_t{16} << 20;

}  // namespace

Timing::Timing(int samples)
    : samples_(samples),
      stream_(cuda::make_stream()),
      begun_(cuda::make_event(cudaEventDefault)),
      ended_(cuda::make_event(cudaEventDefault)) {}

double Timing::seconds(int in_a_row, const std::function<void(cudaStream_t)>& work) const {
  for (int warm_up = 0; warm_up < 3; ++warm_up) work(stream_.get());
  std::vector<float> milliseconds;
  while (static_cast<int>(milliseconds.size()) < samples_) {
    check(cudaEventRecord(begun_.get(), stream_.get()), "recording an event");
    for (int i = 0; i < in_a_row; ++i) work(stream_.get());
    check(cudaEventRecord(ended_.get(), stream_.get()), "recording an event");
    check(cudaEventSynchronize(ended_.get()), "waiting for an event");
    float took = 0;
    check(cudaEventElapsedTime(&took, begun_.get(), ended_.get()), "reading the device's clock");
    milliseconds.push_back(took);
  }
  std::ranges::sort(milliseconds);
  return static_cast<double>(milliseconds[milliseconds.size() / 2]) / 1e3 / in_a_row;
}

cuda::Memory random_memory(std::size_t bytes) {
  const std::vector<std::uint32_t> words = random_words(std::min(bytes, block));
  cuda::Memory memory = cuda::allocate(bytes);
  for (std::size_t at = 0; at < bytes; at += block)
    check(cudaMemcpy(memory.get() + at, words.data(), std::min(block, bytes - at),
                     cudaMemcpyHostToDevice),
          "writing device memory");
  return memory;
}

void fill_randomly(MutableBytes memory) {
  const std::vector<std::uint32_t> words = random_words(std::min(memory.size(), block));
  for (std::size_t at = 0; at < memory.size(); at += block)
    std::memcpy(memory.data() + at, words.data(), std::min(block, memory.size() - at));
}

Duration cpu_time() {
  timespec time{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

std::size_t beyond_cache() {
  int device = 0, cache = 0;
  check(cudaGetDevice(&device), "querying the current device");
  check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device), "querying a device");
  return std::max(std::size_t{512} << 20, 8 * static_cast<std::size_t>(cache));
}

}  // namespace millrace::bench
