// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "tools/gpu_probe/probes.h"
#include "tools/gpu_probe/report.h"

namespace millrace::probe {

namespace {

constexpr std::size_t mebi = 1 << 20;
constexpr std::size_t slabs = 64;
// Other threads may wait for at most this long.
constexpr Duration goal = std::chrono::milliseconds(1);

// A thread that makes the calls of a home thread and of a copy thread all the time.
class Others {
 public:
  Others() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  // The longest time of a call since the last call of longest(). Waits for the call under way.
  Duration longest() {
    for (const std::uint64_t begun = rounds_; rounds_ == begun;) std::this_thread::yield();
    return Duration(longest_.exchange(0));
  }

 private:
  void run(const std::stop_token& stop) {
    cuda::ignore(cudaSetDevice(0));
    while (!stop.stop_requested()) {
      copy();
      ++rounds_;
      std::this_thread::yield();
    }
    cuda::ignore(cudaStreamSynchronize(own_.stream.get()));
  }
  // Starts a copy if the last one has ended.
  void copy() {
    if (!note([&] { return cudaEventQuery(own_.events.front().get()); })) return;
    (void)note([&] {
      return cudaMemcpyAsync(own_.memory.get(), own_.pages.bytes().data(), 4096,
                             cudaMemcpyHostToDevice, own_.stream.get());
    });
    (void)note([&] { return cudaEventRecord(own_.events.front().get(), own_.stream.get()); });
  }
  template <class Call>
  bool note(const Call& call) {
    const Time begun = Clock::now();
    const cudaError_t error = call();
    const std::int64_t took = (Clock::now() - begun).count();
    if (took > longest_) longest_ = took;
    return error == cudaSuccess;
  }

  const Exported own_{mebi, 1};
  std::atomic<std::int64_t> longest_{0};  // nanoseconds
  std::atomic<std::uint64_t> rounds_{0};
  std::jthread thread_;  // last member: it uses the others
};

// The times of calls, for a line of the output, and the longest wait of others for one of them.
struct Times {
  std::string line;
  Duration others{};

  void add(const char* name, Duration took, Duration others_wait) {
    char text[96];
    std::snprintf(text, sizeof text, "%s%s %.2f (%.2f)", line.empty() ? "" : ", ", name,
                  milliseconds(took), milliseconds(others_wait));
    line += text;
    others = std::max(others, others_wait);
  }
};

template <class Call>
auto timed(const char* name, Times& times, Others& others, const Call& call) {
  (void)others.longest();
  const Time begun = Clock::now();
  auto made = call();
  times.add(name, Clock::now() - begun, others.longest());
  return made;
}

// True if the other process can lock the same pages, as a worker without IPC does.
bool can_lock_twice(Channel& channel, const SharedMemory& pages) {
  channel.send(pages.bytes().size());
  channel.send(::getpid());
  channel.send(pages.descriptor());
  return channel.receive<bool>();
}

// The longest waits of other threads.
struct Waits {
  Duration pages{}, pages_by_slab{}, memory{};
};

// Makes and frees what a worker needs, and prints the times of the calls.
void measure(Channel& channel, std::size_t bytes, Others& others, Waits& waits) {
  Times of_pages, of_memory;
  const SharedMemory pages =
      timed("memfd", of_memory, others, [&] { return SharedMemory::create(bytes); });
  cuda::LockedPages locked =
      timed("cudaHostRegister", of_pages, others, [&] { return cuda::lock_pages(pages.bytes()); });
  const bool twice = can_lock_twice(channel, pages);
  cuda::Memory memory =
      timed("cudaMalloc", of_memory, others, [&] { return cuda::allocate(bytes); });
  (void)timed("cudaFree", of_memory, others, [&] { return cudaFree(memory.release()); });
  const char* const can = !locked ? "; CANNOT be locked" : twice ? "" : "; CANNOT be locked twice";
  if (locked)
    (void)timed("cudaHostUnregister", of_pages, others,
                [&] { return cudaHostUnregister(locked.release()); });
  say("%3zu MiB: %s, %s%s", bytes / mebi, of_memory.line.c_str(), of_pages.line.c_str(), can);
  waits.memory = std::max(waits.memory, of_memory.others);
  waits.pages = std::max(waits.pages, of_pages.others);
}

// The same for pages that are locked slab by slab.
void measure_slabs(std::size_t bytes, Others& others, Waits& waits) {
  Times times;
  const SharedMemory pages = SharedMemory::create(bytes);
  auto locked = timed("cudaHostRegister", times, others, [&] {
    std::vector<cuda::LockedPages> all;
    for (std::size_t i = 0; i < slabs; ++i)
      all.push_back(cuda::lock_pages(pages.bytes().subspan(i * (bytes / slabs), bytes / slabs)));
    return all;
  });
  (void)timed("cudaHostUnregister", times, others, [&] {
    locked.clear();
    return true;
  });
  say("%3zu MiB in %zu slabs: %s", bytes / mebi, slabs, times.line.c_str());
  waits.pages_by_slab = std::max(waits.pages_by_slab, times.others);
}

void judge(const Waits& waits) {
  const Duration best = std::max(waits.memory, std::min(waits.pages, waits.pages_by_slab));
  const char* const verdict = best > goal          ? "does NOT hold"
                              : waits.pages > goal ? "holds only if pages are locked slab by slab"
                                                   : "holds";
  say("means: decision 22 %s: other lanes wait %.1f ms for pages in one piece, %.1f ms slab by "
      "slab, "
      "%.1f ms for memory",
      verdict, milliseconds(waits.pages), milliseconds(waits.pages_by_slab),
      milliseconds(waits.memory));
}

bool lock_pages_of(pid_t process, int descriptor, std::size_t bytes) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  const SharedMemory pages = SharedMemory::map(file, bytes);
  ::close(file);
  return cuda::lock_pages(pages.bytes()) != nullptr;
}

}  // namespace

bool probe_times(const Settings& settings) {
  constexpr int idle_ms = 100;
  Peer peer("E");
  Others others;
  (void)others.longest();
  (void)::poll(nullptr, 0, idle_ms);
  say("calls of other threads take at most %.2f ms while nothing is made",
      milliseconds(others.longest()));
  say("ms of each call, and in brackets the longest call of other threads meanwhile (goal: 1 ms):");
  Waits waits;
  for (const std::size_t size : {1u, 64u, 512u})
    if (size <= (settings.quick ? 1u : 512u)) {
      measure(peer.channel(), size * mebi, others, waits);
      measure_slabs(size * mebi, others, waits);
    }
  peer.channel().send(std::size_t{0});
  judge(waits);
  return true;
}

void peer_of_times(Channel& channel) {
  for (auto bytes = channel.receive<std::size_t>(); bytes > 0;
       bytes = channel.receive<std::size_t>()) {
    const auto process = channel.receive<pid_t>();
    const auto descriptor = channel.receive<int>();
    channel.send(lock_pages_of(process, descriptor, bytes));
  }
}

}  // namespace millrace::probe
