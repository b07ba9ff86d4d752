// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/time.h"
#include "tests/gpu/probe/gate.h"
#include "tests/gpu/probe/probes.h"

namespace millrace::probe {

namespace {

using namespace std::chrono_literals;

constexpr auto longest_wait = 5s;  // for an event that can pass
constexpr std::uint32_t most_events = 3;

struct Plan {
  std::uint32_t rounds = 0;
  std::uint32_t together = 0;  // records before the first of them can pass
};

// The results of queries in the process that records the events.
struct OwnQueries {
  std::uint64_t refused = 0;  // queries with neither cudaSuccess nor cudaErrorNotReady
  int code = cudaSuccess;     // code of the last of them
};

struct Outcome {
  std::uint64_t stale = 0, never = 0, refused = 0;
  int code = cudaSuccess;
  std::vector<Duration> delays;  // from the opening of the gate until the event was seen to pass
};

bool is_ready(const cuda::Event& event, Outcome& outcome) {
  const cudaError_t error = cudaEventQuery(event.get());
  if (error == cudaSuccess || error == cudaErrorNotReady) return error == cudaSuccess;
  outcome.code = error;
  ++outcome.refused;
  return false;
}

void wait_for(const cuda::Event& event, Outcome& outcome) {
  const Time begun = Clock::now();
  while (!is_ready(event, outcome)) {
    if (Clock::now() - begun > longest_wait) {
      ++outcome.never;
      return;
    }
    std::this_thread::yield();
  }
  outcome.delays.push_back(Clock::now() - begun);
}

// The events are recorded one after another, each after a gate. Each is queried as soon as it was
// recorded, while its gate is closed. Then the gates open in order.
void watch_round(Channel& channel, const std::vector<cuda::Event>& events, const Plan& plan,
                 std::uint32_t first, Outcome& outcome) {
  for (std::uint32_t i = 0; i < plan.together; ++i)
    outcome.stale += is_ready(events[channel.receive<std::uint32_t>()], outcome) ? 1 : 0;
  for (std::uint32_t i = 0; i < plan.together; ++i) {
    channel.send(first + i);
    wait_for(events[i], outcome);
    for (std::uint32_t later = i + 1; later < plan.together; ++later)
      outcome.stale += is_ready(events[later], outcome) ? 1 : 0;
  }
  channel.send(true);  // the round has no more queries
}

double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

void print(const Plan& plan, Outcome& outcome) {
  say("%u times %u record%s: %llu STALE, %llu never passed, %llu queries with another code (%s)",
      plan.rounds, plan.together, plan.together == 1 ? "" : "s at once",
      static_cast<unsigned long long>(outcome.stale),
      static_cast<unsigned long long>(outcome.never),
      static_cast<unsigned long long>(outcome.refused),
      cudaGetErrorName(static_cast<cudaError_t>(outcome.code)));
  if (outcome.delays.empty()) return;
  std::ranges::sort(outcome.delays);
  const auto at = [&](double part) {
    return microseconds(outcome.delays[static_cast<std::size_t>(
        part * static_cast<double>(outcome.delays.size() - 1))]);
  };
  say("seen after the gate opened: p50 %.1f us, p99 %.1f us, at most %.1f us", at(0.5), at(0.99),
      at(1));
}

bool watch(Channel& channel, const std::vector<cuda::Event>& events, const Plan& plan) {
  channel.send(plan);
  Outcome outcome;
  std::uint32_t next = 1;
  for (std::uint32_t round = 0; round < plan.rounds; ++round, next += plan.together)
    watch_round(channel, events, plan, next, outcome);
  const auto own = channel.receive<OwnQueries>();
  print(plan, outcome);
  if (own.refused > 0)
    say("queries of the process that records: %llu with another code (%s)",
        static_cast<unsigned long long>(own.refused),
        cudaGetErrorName(static_cast<cudaError_t>(own.code)));
  return outcome.stale == 0 && outcome.never == 0;
}

void query(const cuda::Event& event, OwnQueries& own) {
  const cudaError_t error = cudaEventQuery(event.get());
  if (error == cudaSuccess || error == cudaErrorNotReady) return;
  (void)cudaGetLastError();
  own.code = error;
  ++own.refused;
}

OwnQueries record(Channel& channel, const Opened& opened, const Plan& plan) {
  Gate gate;
  OwnQueries own;
  std::uint32_t next = 1;
  for (std::uint32_t round = 0; round < plan.rounds; ++round, next += plan.together) {
    for (std::uint32_t i = 0; i < plan.together; ++i) {
      gate.hold(opened.stream.get(), next + i);
      cuda::check(cudaEventRecord(opened.events[i].get(), opened.stream.get()), "recording");
      channel.send(i);
    }
    for (std::uint32_t i = 0; i < plan.together; ++i) {
      gate.open(channel.receive<std::uint32_t>());
      query(opened.events[i], own);
    }
    (void)channel.receive<bool>();
  }
  return own;
}

}  // namespace

bool probe_events(const Settings& settings, bool disturbed) {
  Peer peer(disturbed ? "F" : "A");
  const Exported exported(2 << 20, most_events);
  exported.send(peer.channel());
  const std::uint32_t usual = disturbed ? 10'000 : 100'000;  // allocations slow down each round
  const std::uint32_t rounds = settings.quick ? 200 : usual;
  const bool alone = watch(peer.channel(), exported.events, {.rounds = rounds, .together = 1});
  const bool together =
      watch(peer.channel(), exported.events, {.rounds = rounds / 4, .together = most_events});
  peer.channel().send(Plan{});
  (void)peer.channel().receive<bool>();  // the peer has closed the handles
  return alone && together;
}

void peer_of_events(Channel& channel, bool disturbed) {
  {
    const Opened opened(channel);
    std::optional<Disturbance> disturbance;
    if (disturbed) disturbance.emplace();
    for (auto plan = channel.receive<Plan>(); plan.rounds > 0; plan = channel.receive<Plan>())
      channel.send(record(channel, opened, plan));
  }
  channel.send(true);
}

}  // namespace millrace::probe
