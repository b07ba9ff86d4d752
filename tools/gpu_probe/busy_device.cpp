// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>

#include "tools/gpu_probe/kernels.h"
#include "tools/gpu_probe/probes.h"
#include "tools/gpu_probe/report.h"

namespace millrace::probe {

namespace {

using namespace std::chrono_literals;

constexpr auto longest_copy = 5s;
// More than this at p50 is a wait for kernels of the other process, which never pause. The times
// above p50 depend on the host too.
constexpr Duration noise = 100us;
constexpr Duration rare = 1ms;  // at p99: two cores of a busy machine add less

// The events around a copy. CudaSlabs records `copied` after each copy, and for some copies
// an event before it too; another one after it wakes its thread.
struct Method {
  const char* name;
  bool before = false, shared = true, second = false;
};
constexpr std::array methods = {Method{.name = "IPC event"},
                                Method{.name = "begun + IPC event", .before = true},
                                Method{.name = "IPC event + second", .second = true},
                                Method{.name = "plain event", .shared = false}};
constexpr std::array<std::size_t, 2> sizes = {200 << 10, 3 << 20};
constexpr std::array<Duration, 4> kernels = {0us, 300us, 2ms, 20ms};  // 0: none

using Spreads = std::array<std::array<Spread, methods.size()>, sizes.size()>;

// The service: locked pages of a memfd, memory, and a stream with nothing on it before each copy.
class Copier {
 public:
  // The time from the start of a copy until its event is seen to have passed.
  Duration copy(std::size_t bytes, const Method& method) {
    const cuda::Event& copied = method.shared ? exported_.events.front() : plain_;
    const Time begun = Clock::now();
    if (method.before) record(before_);
    cuda::check(cudaMemcpyAsync(exported_.memory.get(), exported_.pages.bytes().data(), bytes,
                                cudaMemcpyHostToDevice, exported_.stream.get()),
                "copying");
    record(copied);
    if (method.second) record(second_);
    const Duration took = wait_for(copied) - begun;
    if (method.second) (void)wait_for(second_);
    return took;
  }

 private:
  void record(const cuda::Event& event) {
    cuda::check(cudaEventRecord(event.get(), exported_.stream.get()), "recording");
  }
  static Time wait_for(const cuda::Event& event) {
    const Time latest = Clock::now() + longest_copy;
    while (!cuda::has_passed(event.get(), "asking for a copy"))
      if (Clock::now() > latest) throw std::runtime_error("a copy does not end");
    return Clock::now();
  }

  const Exported exported_{sizes.back(), 1};
  const cuda::Event plain_ = cuda::make_event(cudaEventDisableTiming);
  const cuda::Event before_ = cuda::make_event(cudaEventDefault);
  const cuda::Event second_ = cuda::make_event(cudaEventBlockingSync);
};

struct Amount {
  std::uint32_t copies = 0;  // at most
  Duration time{};           // at most
};

Spread measure(Copier& copier, std::size_t bytes, const Method& method, const Amount& amount) {
  std::vector<Duration> times;
  const Time end = Clock::now() + amount.time;
  while (times.size() < amount.copies && (times.empty() || Clock::now() < end))
    times.push_back(copier.copy(bytes, method));
  return spread_of(std::move(times));
}

std::string text_of(const Spread& spread) {
  const auto whole = [](Duration time) { return std::to_string(std::lround(microseconds(time))); };
  return whole(spread.p50) + '/' + whole(spread.p99) + '/' + whole(spread.most);
}

Spreads measure_all(Copier& copier, Duration kernel, const Amount& amount) {
  Spreads all;
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    std::string line;
    for (std::size_t i = 0; i < methods.size(); ++i) {
      all[size][i] = measure(copier, sizes[size], methods[i], amount);
      line += std::string(i > 0 ? ", " : "") + methods[i].name + ' ' + text_of(all[size][i]);
    }
    say("kernels of %4.1f ms, copies of %4zu KiB: %s", milliseconds(kernel), sizes[size] >> 10,
        line.c_str());
  }
  return all;
}

// The work of the worker's device: a part of it, and the whole time.
struct Work {
  std::uint64_t work = 0;
  Duration time{};

  double rate() const { return static_cast<double>(work) / static_cast<double>(time.count()); }
};

Spreads measure_beside(Channel& channel, Copier& copier, Duration kernel, const Amount& amount) {
  const auto run = [&](const auto& meanwhile) {
    channel.send(kernel);
    (void)channel.receive<bool>();  // the kernels run
    meanwhile();
    channel.send(true);
    return channel.receive<Work>();
  };
  const Work alone =
      run([&] { (void)::poll(nullptr, 0, static_cast<int>(milliseconds(amount.time))); });
  Spreads spreads;
  const Work beside = run([&] { spreads = measure_all(copier, kernel, amount); });
  say("kernels of %4.1f ms do %.1f %% of their work beside the copies", milliseconds(kernel),
      100 * beside.rate() / alone.rate());
  return spreads;
}

// Which methods wait for kernels, and by how much at most.
struct Waits {
  std::array<bool, methods.size()> waits{};
  Duration at_p50{}, at_p99{};

  void compare(const Spreads& alone, const Spreads& beside) {
    for (std::size_t size = 0; size < sizes.size(); ++size)
      for (std::size_t i = 0; i < methods.size(); ++i) {
        const Duration p50 = beside[size][i].p50 - alone[size][i].p50;
        const Duration p99 = beside[size][i].p99 - alone[size][i].p99;
        waits[i] = waits[i] || p50 > noise;
        at_p50 = std::max(at_p50, p50);
        at_p99 = std::max(at_p99, p99);
      }
  }
};

void judge(const Waits& found) {
  const auto [ipc, before, second, plain] = found.waits;
  say("beside kernels a copy takes at most %.0f us more at p50 and %.0f us more at p99",
      microseconds(found.at_p50), microseconds(found.at_p99));
  if (!ipc && !before && !second && found.at_p99 > rare)
    say("means: decision 11 holds for most copies: the slowest wait for kernels of another "
        "process");
  else if (!ipc && !before && !second)
    say("means: decision 11 holds: copies do not wait for kernels of another process");
  else if (!ipc)
    say("means: decision 11 holds without %s: drop it, and time copies by the host's clock",
        before ? "the event before a copy" : "the second event after a copy");
  else if (!plain)
    say("means: decision 11 holds without IPC events: use words that the copy engine writes "
        "(decision 12)");
  else
    say("means: decision 11 does NOT hold: use words that the copy engine writes (decision 12), or "
        "require MPS");
}

// Keeps two kernels on the stream, so that the device is never without one, until a message comes.
void keep_busy(Channel& channel, const cuda::Stream& stream, Duration kernel, std::uint64_t* work) {
  const std::array<cuda::Event, 2> ended = {cuda::make_event(cudaEventDisableTiming),
                                            cuda::make_event(cudaEventDisableTiming)};
  for (std::size_t i = 0; i < 2 || !channel.has_message(); ++i) {
    const cuda::Event& event = ended[i % 2];
    if (i >= 2) cuda::check(cudaEventSynchronize(event.get()), "waiting for a kernel");
    put_spin(stream.get(), kernel, work);
    cuda::check(cudaEventRecord(event.get(), stream.get()), "recording");
    if (i == 1) channel.send(true);
  }
  cuda::check(cudaStreamSynchronize(stream.get()), "waiting for kernels");
}

}  // namespace

bool probe_busy_device(const Settings& settings) {
  Peer peer("G");
  Copier copier;
  (void)peer.channel().receive<bool>();  // it has a context
  // The methods and sizes, and once the kernels alone, with and without kernels.
  constexpr std::size_t cases = (methods.size() * sizes.size() + 1) * kernels.size();
  const Amount amount{
      .copies = settings.quick ? 20u : 2'000u,
      .time = settings.quick ? 20ms : std::min<Duration>(1500ms, settings.part(0.7) / cases)};
  say("p50/p99/max in us from the start of a copy until its event is seen");
  const Spreads alone = measure_all(copier, kernels.front(), amount);
  Waits waits;
  for (std::size_t i = 1; i < kernels.size(); ++i)
    waits.compare(alone, measure_beside(peer.channel(), copier, kernels[i], amount));
  judge(waits);
  return true;
}

void peer_of_busy_device(Channel& channel) {
  const cuda::Memory memory = cuda::allocate(sizeof(std::uint64_t));
  const cuda::Stream stream = cuda::make_stream();
  auto* const work = reinterpret_cast<std::uint64_t*>(memory.get());
  put_spin(stream.get(), 0us, work);  // loads the kernel
  channel.send(true);
  for (;;) {
    const auto kernel = channel.receive<Duration>();
    cuda::check(cudaMemsetAsync(work, 0, sizeof *work, stream.get()), "writing");
    const Time begun = Clock::now();
    keep_busy(channel, stream, kernel, work);
    Work done{.time = Clock::now() - begun};
    cuda::check(
        cudaMemcpyAsync(&done.work, work, sizeof *work, cudaMemcpyDeviceToHost, stream.get()),
        "reading the work");
    cuda::check(cudaStreamSynchronize(stream.get()), "reading the work");
    (void)channel.receive<bool>();
    channel.send(done);
  }
}

}  // namespace millrace::probe
