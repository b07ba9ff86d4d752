// SPDX-License-Identifier: Apache-2.0
// Measures the CPU time of the calls with which slabs start a copy, each alone.
#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "base/queue.h"
#include "bench/gpu_bench.h"
#include "bench/gpu_host_pages.h"
#include "load/streams/histogram.h"

namespace millrace::bench {

namespace {

using load::Histogram;

// A thread that waits at a queue, as the one that waits for copies.
class Sleeper {
 public:
  ~Sleeper() { queue_.close(); }

  // Pushes a value that wakes the thread.
  void wake() { pushed_ += queue_.try_push(1) == Queue<int>::Pushed::first; }
  // Returns when the thread has taken the value, and then had time to fall asleep.
  void let_sleep() const {
    while (taken_ < pushed_) std::this_thread::yield();
    const Time asleep = Clock::now() + std::chrono::microseconds(50);
    while (Clock::now() < asleep) std::this_thread::yield();
  }

 private:
  Queue<int> queue_{1};
  int pushed_ = 0;
  std::atomic<int> taken_{0};
  std::jthread thread_{[this] {
    while (queue_.pop_until(Time::max())) ++taken_;
  }};
};

template <class Call>
void add(Histogram& to, const Call& call) {
  const Duration before = cpu_time();
  call();
  to.add(cpu_time() - before);
}

// The calls in the order of a start, on a stream of their own.
class Parts {
 public:
  explicit Parts(int ordinal) : ordinal_(ordinal) {}

  void measure() {
    add(times_[0], [] {});
    add(times_[1], [this] { const cuda::OnDevice on(ordinal_); });
    add(times_[2], [this] {
      cuda::check(cudaMemcpyAsync(to_.get(), from_.bytes().data(), bytes, cudaMemcpyHostToDevice,
                                  stream_.get()),
                  "copying to the device");
    });
    add(times_[3], [this] { record(shared_); });
    add(times_[4], [this] { record(plain_); });
    add(times_[5], [this] { sleeper_.wake(); });
    cuda::check(cudaStreamSynchronize(stream_.get()), "copying to the device");
    sleeper_.let_sleep();
  }

  void print(Figures& figures) const {
    for (std::size_t i = 0; i < names.size(); ++i)
      for (const auto& [part, name] : {std::pair{0.5, " p50"}, {0.99, " p99"}})
        figures.add(std::string(names[i]) + name, microseconds(times_[i].quantile(part)), "us");
  }

 private:
  static constexpr std::size_t bytes = std::size_t{64} * 3200;
  static constexpr std::array names{"reading this clock, in every figure",
                                    "OnDevice",
                                    "cudaMemcpyAsync",
                                    "record of an IPC event",
                                    "record of a plain event",
                                    "push that wakes a thread"};

  void record(const cuda::Event& event) const {
    cuda::check(cudaEventRecord(event.get(), stream_.get()), "recording an event");
  }

  const int ordinal_;
  const HostPages from_{bytes, HostPages::Pages::memfd};
  const cuda::Memory to_ = cuda::allocate(bytes);
  const cuda::Stream stream_ = cuda::make_stream();
  const cuda::Event shared_ = cuda::make_event(cudaEventDisableTiming | cudaEventInterprocess);
  const cuda::Event plain_ = cuda::make_event(cudaEventBlockingSync);
  std::array<Histogram, names.size()> times_;
  Sleeper sleeper_;
};

}  // namespace

void measure_parts(const Bench& bench) {
  Parts warm_up(bench.ordinal), parts(bench.ordinal);
  for (int batch = 0; batch < 20; ++batch) warm_up.measure();
  for (int batch = 0; batch < bench.amounts.batches; ++batch) parts.measure();
  parts.print(bench.figures);
}

}  // namespace millrace::bench
