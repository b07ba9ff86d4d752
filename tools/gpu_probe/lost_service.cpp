// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <utility>

#include "tools/gpu_probe/aftermath.h"
#include "tools/gpu_probe/kernels.h"
#include "tools/gpu_probe/probes.h"

namespace millrace::probe {

namespace {

using namespace std::chrono_literals;

// The bytes that each process writes.
constexpr int of_service = 0x11, of_worker = 0x22, of_third = 0x33;

constexpr std::uint32_t word_of(int byte) { return static_cast<std::uint32_t>(byte) * 0x01010101u; }

// Counts wrong words in device memory. Its own memory is allocated before the service is killed.
class Reader {
 public:
  // Starts a kernel that reads `bytes` bytes again and again.
  void start(const std::byte* memory, std::size_t bytes, int expected, Duration duration) {
    cuda::check(cudaMemsetAsync(wrong_.get(), 0, sizeof(std::uint64_t), stream_.get()), "writing");
    put_reader(stream_.get(), memory, bytes / sizeof(std::uint32_t), word_of(expected), duration,
               reinterpret_cast<std::uint64_t*>(wrong_.get()));
  }
  // Waits for its end.
  std::uint64_t wrong_words() {
    std::uint64_t wrong = 0;
    cuda::check(
        cudaMemcpyAsync(&wrong, wrong_.get(), sizeof wrong, cudaMemcpyDeviceToHost, stream_.get()),
        "reading");
    cuda::check(cudaStreamSynchronize(stream_.get()), "reading");
    return wrong;
  }
  cudaStream_t stream() const { return stream_.get(); }

 private:
  cuda::Memory wrong_ = cuda::allocate(sizeof(std::uint64_t));
  cuda::Stream stream_ = cuda::make_stream();
};

void write(std::byte* memory, std::size_t bytes, int value, cudaStream_t stream) {
  cuda::check(cudaMemsetAsync(memory, value, bytes, stream), "writing");
  cuda::check(cudaStreamSynchronize(stream), "writing");
}

// The third process takes orders, and answers each with a number.
enum class Order : std::uint8_t { free_memory, take, count_wrong, give_back };
constexpr std::uint64_t failed = ~std::uint64_t{0};

class Third {
 public:
  explicit Third(std::size_t bytes, std::size_t most) : bytes_(bytes), most_(most) {}

  std::uint64_t obey(Order order) try {
    switch (order) {
      case Order::free_memory: return free_memory();
      case Order::take: return take();
      case Order::count_wrong: return count_wrong();
      case Order::give_back: blocks_.clear();
    }
    return 0;
  } catch (const DeviceFailure&) {
    return failed;
  }

 private:
  static std::size_t free_memory() {
    std::size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "querying memory");
    return free;
  }
  // As much memory as possible, so that it gets what the service has left behind.
  std::uint64_t take() {
    constexpr std::size_t for_others = 256 << 20;
    while (blocks_.size() < most_ && free_memory() > bytes_ + for_others) {
      blocks_.push_back(cuda::allocate(bytes_));
      write(blocks_.back().get(), bytes_, of_third, reader_.stream());
    }
    return blocks_.size();
  }
  std::uint64_t count_wrong() {
    std::uint64_t wrong = 0;
    for (const cuda::Memory& block : blocks_) {
      reader_.start(block.get(), bytes_, of_third, 0s);
      wrong += reader_.wrong_words();
    }
    return wrong;
  }

  const std::size_t bytes_, most_;
  Reader reader_;
  std::vector<cuda::Memory> blocks_;
};

std::uint64_t ask(Peer& third, Order order) {
  third.channel().send(order);
  return third.channel().receive<std::uint64_t>();
}

struct Findings {
  bool reads = false, writes = false;  // without an error
  bool alone = true;                   // no process saw what another one wrote
  bool works = false;                  // the device, for this process
};

// Prints how a part ended. False if it was an error.
template <class Part>
bool succeeds(const char* name, Findings& findings, const Part& part) try {
  const std::uint64_t wrong = part();
  say("%s: no error, %llu WRONG words", name, static_cast<unsigned long long>(wrong));
  findings.alone = findings.alone && wrong == 0;
  return true;
} catch (const DeviceFailure& failure) {
  say("%s: %s", name, failure.what());
  return false;
}

bool judge(const Findings& found) {
  if (!found.works)
    say("means: docs/workers.md does NOT hold: a worker must end when the service was killed");
  else if (!found.alone)
    say("means: docs/workers.md does NOT hold: memory of a killed service is given to others");
  else if (!found.reads || !found.writes)
    say("means: a worker must stop all its streams before it attaches again (docs/workers.md)");
  else
    say("means: docs/workers.md and decision 12 hold: a worker attaches again in its process");
  return found.works && found.alone;
}

void serve(Channel& channel, std::size_t bytes) {
  constexpr int copies = 8;  // so that one is under way when the signal comes
  const Exported exported(bytes, 1);
  std::ranges::fill(exported.pages.bytes(), std::byte{of_service});
  write(exported.memory.get(), bytes, of_service, exported.stream.get());
  exported.send(channel);
  (void)channel.receive<bool>();
  for (int i = 0; i < copies; ++i)
    cuda::check(cudaMemcpyAsync(exported.memory.get(), exported.pages.bytes().data(), bytes,
                                cudaMemcpyHostToDevice, exported.stream.get()),
                "copying");
  cuda::check(cudaEventRecord(exported.events.front().get(), exported.stream.get()), "recording");
  channel.send(true);
  wait_to_be_killed();
}

struct Scene {
  std::size_t bytes = 0;
  std::size_t most = 0;  // blocks of the third process
  bool third = false;
};

// The worker's view: kills the service while a kernel reads its memory.
class Worker {
 public:
  Worker(Peer& service, Peer& third, std::size_t bytes)
      : service_(service), third_(third), bytes_(bytes), opened_(service.channel()) {}

  Findings survive(Duration how_long) {
    const std::uint64_t before = ask(third_, Order::free_memory);
    reader_.start(opened_.memory.get(), bytes_, of_service, how_long);
    service_.channel().send(true);
    (void)service_.channel().receive<bool>();  // its copies were started
    say("the service is killed");
    service_.kill();
    const std::uint64_t after = ask(third_, Order::free_memory);
    const std::uint64_t taken = ask(third_, Order::take);
    (void)watch(opened_.events.front(), how_long);
    use_memory(how_long / 4, taken);
    (void)ask(third_, Order::give_back);
    (void)device_works();
    timed("cudaEventDestroy", [&] { return cudaEventDestroy(opened_.events.front().release()); });
    timed("cudaIpcCloseMemHandle", [&] { return cudaIpcCloseMemHandle(opened_.memory.release()); });
    const std::uint64_t at_end = ask(third_, Order::free_memory);
    if (at_end != failed)
      say("free memory: %llu MiB before, %llu after the kill, %llu after the handle was closed",
          mebibytes(before), mebibytes(after), mebibytes(at_end));
    found_.works = device_works();
    return found_;
  }

 private:
  static unsigned long long mebibytes(std::uint64_t bytes) { return bytes >> 20; }

  void use_memory(Duration how_long, std::uint64_t taken) {
    found_.reads = succeeds("(a) a kernel that read the memory across the kill", found_,
                            [&] { return reader_.wrong_words(); });
    found_.writes = succeeds("(b) the memory written and read after the kill", found_, [&] {
      write(opened_.memory.get(), bytes_, of_worker, reader_.stream());
      reader_.start(opened_.memory.get(), bytes_, of_worker, how_long);
      return reader_.wrong_words();
    });
    const std::uint64_t wrong = ask(third_, Order::count_wrong);
    if (taken == failed || wrong == failed)
      return say("(c) the new memory of a third process: it could not use the device");
    say("(c) the new memory of a third process, %llu times %llu MiB: %llu WRONG words",
        static_cast<unsigned long long>(taken), mebibytes(bytes_),
        static_cast<unsigned long long>(wrong));
    found_.alone = found_.alone && wrong == 0;
  }

  Peer& service_;
  Peer& third_;
  const std::size_t bytes_;
  Opened opened_;
  Reader reader_;
  Findings found_;
};

}  // namespace

bool probe_killed_service(const Settings& settings) {
  const std::size_t bytes = std::size_t{settings.quick ? 8u : 512u} << 20;
  const std::size_t most = settings.quick ? 2 : 1'000;
  Peer service("D"), third("D");
  service.channel().send(Scene{.bytes = bytes, .most = most, .third = false});
  third.channel().send(Scene{.bytes = bytes, .most = most, .third = true});
  (void)third.channel().receive<bool>();
  return judge(Worker(service, third, bytes).survive(settings.quick ? Duration(1s) : 2s));
}

void peer_killed_service(Channel& channel) {
  const auto scene = channel.receive<Scene>();
  if (!scene.third) return serve(channel, scene.bytes);
  Third third(scene.bytes, scene.most);
  for (channel.send(true);;) channel.send(third.obey(channel.receive<Order>()));
}

}  // namespace millrace::probe
