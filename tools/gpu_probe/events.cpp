// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "tools/gpu_probe/disturbance.h"
#include "tools/gpu_probe/gate.h"
#include "tools/gpu_probe/probes.h"
#include "tools/gpu_probe/report.h"

namespace millrace::probe {

namespace {

using namespace std::chrono_literals;

constexpr auto longest_wait = 5s;  // for an event that can pass
constexpr std::uint32_t most_events = 3;

// A gate that waits for its process forever would show nothing. With a disturbance this happens
// often: to free memory or to load a module, the driver may wait for the gate with a lock that the
// call needs which leads to its opening.
constexpr Duration patience = 5s, disturbed_patience = 100ms;

struct Plan {
  std::uint32_t rounds = 0;    // at most
  std::uint32_t together = 0;  // records before the first of them can pass
  std::uint32_t first = 0;     // the number of the first record
};

// The results of queries in the process that records the events.
struct OwnQueries {
  std::uint64_t refused = 0;  // queries with neither cudaSuccess nor cudaErrorNotReady
  int code = cudaSuccess;     // code of the last of them
};

struct Outcome {
  std::uint32_t rounds = 0;
  std::uint64_t stale = 0, never = 0, refused = 0, timeouts = 0;
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
// recorded, while its gate is closed. Then the gates open in order. Returns the stale queries,
// unless a gate has timed out.
std::uint64_t watch_round(Channel& channel, const std::vector<cuda::Event>& events,
                          const Plan& plan, std::uint32_t first, Outcome& outcome) {
  std::uint64_t stale = 0;
  for (std::uint32_t i = 0; i < plan.together; ++i)
    stale += is_ready(events[channel.receive<std::uint32_t>()], outcome) ? 1 : 0;
  for (std::uint32_t i = 0; i < plan.together; ++i) {
    channel.send(first + i);
    wait_for(events[i], outcome);
    for (std::uint32_t later = i + 1; later < plan.together; ++later)
      stale += is_ready(events[later], outcome) ? 1 : 0;
  }
  return stale;
}

Outcome watch_rounds(Channel& channel, const std::vector<cuda::Event>& events, const Plan& plan,
                     Time end) {
  Outcome outcome;
  for (bool more = true; more;) {
    const std::uint32_t first = plan.first + outcome.rounds * plan.together;
    const std::uint64_t stale = watch_round(channel, events, plan, first, outcome);
    more = ++outcome.rounds < plan.rounds && outcome.never == 0 && Clock::now() < end;
    channel.send(more);
    if (channel.receive<bool>())
      ++outcome.timeouts;  // an event may have passed before its query
    else
      outcome.stale += stale;
  }
  return outcome;
}

void print(const Plan& plan, const Outcome& outcome) {
  say("%u times %u record%s: %llu STALE, %llu never passed, %llu queries with another code (%s)",
      outcome.rounds, plan.together, plan.together == 1 ? "" : "s at once",
      static_cast<unsigned long long>(outcome.stale),
      static_cast<unsigned long long>(outcome.never),
      static_cast<unsigned long long>(outcome.refused),
      cudaGetErrorName(static_cast<cudaError_t>(outcome.code)));
  if (outcome.timeouts > 0)
    say("in %llu of them the gate timed out: they prove nothing",
        static_cast<unsigned long long>(outcome.timeouts));
  const Spread delay = spread_of(outcome.delays);
  say("seen after the gate opened: p50 %.1f us, p99 %.1f us, at most %.1f us",
      microseconds(delay.p50), microseconds(delay.p99), microseconds(delay.most));
}

Outcome watch(Channel& channel, const std::vector<cuda::Event>& events, const Plan& plan,
              Duration at_most) {
  channel.send(plan);
  const Outcome outcome = watch_rounds(channel, events, plan, Clock::now() + at_most);
  const auto own = channel.receive<OwnQueries>();
  print(plan, outcome);
  if (own.refused > 0)
    say("queries of the process that records: %llu with another code (%s)",
        static_cast<unsigned long long>(own.refused),
        cudaGetErrorName(static_cast<cudaError_t>(own.code)));
  return outcome;
}

bool judge(const Outcome& one, const Outcome& several, bool disturbed) {
  const char* const beside = disturbed ? " beside captures, loading and freeing" : "";
  const bool holds = one.stale + several.stale + one.never + several.never == 0;
  if (!holds)
    say("means: decision 12 does NOT hold%s: words that the device writes must replace the events",
        beside);
  else if (one.timeouts == one.rounds && several.timeouts == several.rounds)
    say("means: nothing for decision 12, because the gate timed out in every round");
  else
    say("means: decision 12 holds%s: a query sees the last record of the other process", beside);
  return holds;
}

// How long the calls of the process that records took, without the wait for a pause.
struct Calls {
  std::vector<Duration> launch, record, query;
};

template <class Call>
void timed(std::vector<Duration>& times, const Call& call) {
  const Time begun = Clock::now();
  call();
  times.push_back(Clock::now() - begun);
}

void print(const char* when, const Calls& calls) {
  const Spread launch = spread_of(calls.launch), record = spread_of(calls.record),
               query = spread_of(calls.query);
  say("calls of the worker%s, p99 and at most: launch %.0f and %.0f us, record %.0f and %.0f us, "
      "query %.0f and %.0f us",
      when, microseconds(launch.p99), microseconds(launch.most), microseconds(record.p99),
      microseconds(record.most), microseconds(query.p99), microseconds(query.most));
}

// The process that records, with its events, gate and threads.
struct Recorder {
  Recorder(Channel& channel, bool disturbed)
      : opened(channel), gate(disturbed ? disturbed_patience : patience) {
    if (disturbed) disturbance.emplace();
  }

  const Opened opened;
  Gate gate;  // made before the disturbance, because pages cannot be locked beside a capture
  std::optional<Disturbance> disturbance;
  OwnQueries own;
};

void query(const cuda::Event& event, OwnQueries& own) {
  const cuda::Relaxed relaxed;
  const cudaError_t error = cudaEventQuery(event.get());
  if (error == cudaSuccess || error == cudaErrorNotReady) return;
  (void)cudaGetLastError();
  own.code = error;
  ++own.refused;
}

void record_round(Channel& channel, Recorder& recorder, const Plan& plan, std::uint32_t first,
                  Calls& calls) {
  const auto stream = recorder.opened.stream.get();
  const auto& events = recorder.opened.events;
  for (std::uint32_t i = 0; i < plan.together; ++i) {
    timed(calls.launch, [&] { recorder.gate.hold(stream, first + i); });
    timed(calls.record,
          [&] { cuda::check(cudaEventRecord(events[i].get(), stream), "recording"); });
    channel.send(i);
  }
  for (std::uint32_t i = 0; i < plan.together; ++i) {
    recorder.gate.open(channel.receive<std::uint32_t>());
    timed(calls.query, [&] { query(events[i], recorder.own); });
  }
}

// In every second round nothing is loaded or freed while a gate is closed.
void record(Channel& channel, Recorder& recorder, const Plan& plan) {
  std::array<Calls, 2> calls;
  bool quiet = false;
  bool more = true;
  for (std::uint32_t first = plan.first; more; first += plan.together) {
    {
      Disturbance::Pause pause;
      if (quiet && recorder.disturbance) pause = recorder.disturbance->pause();
      record_round(channel, recorder, plan, first, calls[quiet ? 1 : 0]);
    }
    more = channel.receive<bool>();
    channel.send(recorder.gate.has_timed_out(first));
    quiet = !quiet && recorder.disturbance;
  }
  print(recorder.disturbance ? " beside loading and freeing" : "", calls[0]);
  if (recorder.disturbance) print(" without loading and freeing", calls[1]);
}

}  // namespace

bool probe_events(const Settings& settings, bool disturbed) {
  Peer peer(disturbed ? "F" : "A");
  Channel& channel = peer.channel();
  const Exported exported(2 << 20, most_events);
  exported.send(channel);
  const std::uint32_t usual = disturbed ? 2'000 : 100'000;
  const std::uint32_t rounds = settings.quick ? 200 : usual;
  const Plan one{.rounds = rounds, .together = 1, .first = 1};
  const Plan several{.rounds = rounds / 4, .together = most_events, .first = 1 + rounds};
  const Outcome alone = watch(channel, exported.events, one, settings.part(0.4));
  const Outcome together = watch(channel, exported.events, several, settings.part(0.35));
  channel.send(Plan{});
  (void)channel.receive<bool>();  // the peer has closed the handles
  return judge(alone, together, disturbed);
}

void peer_of_events(Channel& channel, bool disturbed) {
  {
    Recorder recorder(channel, disturbed);
    for (auto plan = channel.receive<Plan>(); plan.rounds > 0; plan = channel.receive<Plan>()) {
      record(channel, recorder, plan);
      channel.send(std::exchange(recorder.own, {}));
    }
    if (recorder.disturbance) recorder.disturbance->print();
  }
  channel.send(true);
}

}  // namespace millrace::probe
