// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "tests/gpu/probe/probes.h"
#include "tests/gpu/probe/report.h"

namespace millrace::probe {

namespace {

constexpr std::size_t mebi = 1 << 20;

// A thread that makes the calls of a home thread and of a copy thread all the time. longest()
// returns the longest time of each call since the last call of longest().
class Others {
 public:
  Others() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  std::array<Duration, 3> longest() {
    std::array<Duration, 3> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = Duration(longest_[i].exchange(0));
    return all;
  }

 private:
  void run(const std::stop_token& stop) {
    cuda::check(cudaSetDevice(0), "selecting a device");
    while (!stop.stop_requested()) {
      note(0, [&] { return cudaEventQuery(own_.events.front().get()); });
      note(1, [&] {
        return cudaMemcpyAsync(own_.memory.get(), own_.pages.bytes().data(), 4096,
                               cudaMemcpyHostToDevice, own_.stream.get());
      });
      note(2, [&] { return cudaEventRecord(own_.events.front().get(), own_.stream.get()); });
      std::this_thread::yield();
    }
    (void)cudaStreamSynchronize(own_.stream.get());
  }
  template <class Call>
  void note(std::size_t which, const Call& call) {
    const Time begun = Clock::now();
    (void)call();
    const std::int64_t took = (Clock::now() - begun).count();
    if (took > longest_[which]) longest_[which] = took;
  }

  const Exported own_{mebi, 1};
  std::array<std::atomic<std::int64_t>, 3> longest_{};  // nanoseconds
  std::jthread thread_;                                 // last member: it uses the others
};

struct Step {
  const char* name;
  Duration took;
  std::array<Duration, 3> others;
};

void print(const Step& step, std::size_t bytes) {
  say("%5zu MiB  %-28s %9.2f ms   meanwhile at most: query %.2f, copy %.2f, record %.2f ms",
      bytes / mebi, step.name, milliseconds(step.took), milliseconds(step.others[0]),
      milliseconds(step.others[1]), milliseconds(step.others[2]));
}

template <class Call>
auto timed(const char* name, std::size_t bytes, Others& others, const Call& call) {
  (void)others.longest();
  const Time begun = Clock::now();
  auto made = call();
  print({name, Clock::now() - begun, others.longest()}, bytes);
  return made;
}

// Lets the other process lock the same pages, as a worker without IPC does.
void lock_twice(Channel& channel, const SharedMemory& pages) {
  channel.send(pages.bytes().size());
  channel.send(::getpid());
  channel.send(pages.descriptor());
  say("%5zu MiB  the same pages %s be locked by two processes", pages.bytes().size() / mebi,
      channel.receive<bool>() ? "can" : "CANNOT");
}

void measure(Channel& channel, std::size_t bytes, Others& others) {
  const SharedMemory pages =
      timed("make a memfd", bytes, others, [&] { return SharedMemory::create(bytes); });
  cuda::LockedPages locked =
      timed("cudaHostRegister", bytes, others, [&] { return cuda::lock_pages(pages.bytes()); });
  if (!locked) say("%5zu MiB  CANNOT be locked", bytes / mebi);
  lock_twice(channel, pages);
  cuda::Memory memory = timed("cudaMalloc", bytes, others, [&] { return cuda::allocate(bytes); });
  (void)timed("cudaFree", bytes, others, [&] { return cudaFree(memory.release()); });
  if (locked)
    (void)timed("cudaHostUnregister", bytes, others,
                [&] { return cudaHostUnregister(locked.release()); });
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
  Peer peer("E");
  cuda::check(cudaFree(nullptr), "selecting a device");
  Others others;
  for (const std::size_t size : {1u, 64u, 512u, 1024u})
    if (size <= (settings.quick ? 1u : 1024u)) measure(peer.channel(), size * mebi, others);
  peer.channel().send(std::size_t{0});
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
