// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <span>
#include <thread>

#include "tools/gpu_probe/probes.h"
#include "tools/gpu_probe/report.h"

namespace millrace::probe {

namespace {

struct Plan {
  std::size_t bytes = 0;
  std::uint32_t rounds = 0;  // at most
};

std::span<std::uint32_t> words(MutableBytes bytes) {
  return {reinterpret_cast<std::uint32_t*>(bytes.data()), bytes.size() / sizeof(std::uint32_t)};
}

struct Outcome {
  std::uint32_t rounds = 0;
  std::uint64_t wrong = 0;    // copies that were missing or incomplete
  std::uint64_t at_once = 0;  // events that had passed at the first query
};

void await(const cuda::Event& event, Outcome& outcome) {
  if (cuda::has_passed(event.get(), "asking for a copy")) {
    ++outcome.at_once;
    return;
  }
  while (!cuda::has_passed(event.get(), "asking for a copy")) std::this_thread::yield();
}

Outcome compare(Channel& channel, const Opened& opened, MutableBytes host, const Plan& plan,
                Time end) {
  Outcome outcome;
  for (bool more = true; more;) {
    const auto pattern = channel.receive<std::uint32_t>();
    await(opened.events.front(), outcome);
    cuda::check(cudaMemcpyAsync(host.data(), opened.memory.get(), plan.bytes,
                                cudaMemcpyDeviceToHost, opened.stream.get()),
                "reading the device");
    cuda::check(cudaStreamSynchronize(opened.stream.get()), "reading the device");
    const auto read = words(host.first(plan.bytes));
    if (std::ranges::any_of(read, [&](std::uint32_t word) { return word != pattern; }))
      ++outcome.wrong;
    more = ++outcome.rounds < plan.rounds && Clock::now() < end;
    channel.send(more);
  }
  return outcome;
}

void copy(Channel& channel, const Exported& exported, const Plan& plan) {
  std::uint32_t round = 0;
  for (bool more = true; more; more = channel.receive<bool>()) {
    const std::uint32_t pattern = ++round * 2'654'435'761u;
    std::ranges::fill(words(exported.pages.bytes().first(plan.bytes)), pattern);
    cuda::check(cudaMemcpyAsync(exported.memory.get(), exported.pages.bytes().data(), plan.bytes,
                                cudaMemcpyHostToDevice, exported.stream.get()),
                "copying");
    cuda::check(cudaEventRecord(exported.events.front().get(), exported.stream.get()), "recording");
    channel.send(pattern);
  }
}

bool check_copies(Channel& channel, const Opened& opened, MutableBytes host, const Plan& plan,
                  Duration at_most) {
  channel.send(plan);
  const Outcome outcome = compare(channel, opened, host, plan, Clock::now() + at_most);
  say("%u copies of %zu KiB: %llu WRONG; for %llu the event had passed at the first query",
      outcome.rounds, plan.bytes >> 10, static_cast<unsigned long long>(outcome.wrong),
      static_cast<unsigned long long>(outcome.at_once));
  return outcome.wrong == 0;
}

}  // namespace

bool probe_copies(const Settings& settings) {
  Peer peer("B");
  Channel& channel = peer.channel();
  const std::size_t large = std::size_t{settings.quick ? 4u : 64u} << 20;
  channel.send(large);
  Opened opened(channel);
  const SharedMemory pages = SharedMemory::create(large);
  const cuda::LockedPages locked = cuda::lock_pages(pages.bytes());
  const bool quick = settings.quick;
  const bool all =
      check_copies(channel, opened, pages.bytes(), {large, quick ? 30u : 300u}, settings.part(0.4));
  const bool small = check_copies(channel, opened, pages.bytes(),
                                  {64 << 10, quick ? 300u : 20'000u}, settings.part(0.35));
  opened.memory.reset();
  channel.send(Plan{});
  (void)channel.receive<bool>();
  if (all && small)
    say("means: decision 12 holds: a copy is complete when another process sees its event");
  else
    say("means: decision 12 does NOT hold: words that the device writes must replace the events");
  return all && small;
}

void peer_of_copies(Channel& channel) {
  const Exported exported(channel.receive<std::size_t>(), 1);
  say("pages of a memfd %s be locked", exported.locked ? "can" : "CANNOT");
  exported.send(channel);
  for (auto plan = channel.receive<Plan>(); plan.rounds > 0; plan = channel.receive<Plan>())
    copy(channel, exported, plan);
  channel.send(true);
}

}  // namespace millrace::probe
