// SPDX-License-Identifier: Apache-2.0
// Measures the time of a count on the counting thread, and of a scrape on the collecting thread.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "bench/options.h"
#include "monitoring/exporter.h"
#include "tests/support/allocations.h"

namespace {

using namespace millrace;
using millrace::test::allocations;
using namespace std::chrono_literals;

// Rows with random times between their instants, so that branches are not predictable.
std::array<Instants, 1024> some_rows() {
  std::array<Instants, 1024> rows;
  std::uint64_t random = 1;
  for (Instants& row : rows) {
    Time at(1h);
    for (Time* instant : {&row.arrived, &row.ready, &row.closed, &row.copied, &row.taken, &row.done,
                          &row.written}) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      at += Duration((1000 << (random >> 60)) + static_cast<std::int64_t>(random >> 56));
      *instant = at;
    }
  }
  return rows;
}

// Prints the nanoseconds of a call and of a count, and the allocations of all calls.
template <class Call>
void measure(const char* what, double counts, const Call& call) {
  constexpr int calls = 1 << 20;
  double best = 1e9;
  const std::size_t allocated = allocations();
  for (int round = 0; round < 15; ++round) {
    const Time began = Clock::now();
    for (std::size_t i = 0; i < calls; ++i) call(i % 1024);
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - began).count());
  }
  std::printf("%-34s %6.1f ns, %5.1f ns a count, %zu allocations\n", what, best / calls,
              best / calls / counts, allocations() - allocated);
}

// The statistics of a service with `threads` io threads and three pipelines.
struct Service {
  explicit Service(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) {
      sources.threads.push_back(&thread_stats.emplace_back());
      sources.websocket.push_back(&transports.emplace_back());
    }
    sources.service.push_back(&service);
    sources.zmq.push_back(&transports.emplace_back());
    sources.zmq_sockets.push_back(&socket);
    sources.worker_servers.push_back(&worker_server);
    for (const char* name : {"default", "telephone", "vad"}) {
      PipelineSource pipeline{name, 16000, {}, {&lanes.emplace_back()}};
      for (std::size_t i = 0; i < threads; ++i) pipeline.streams.push_back(&streams.emplace_back());
      sources.pipelines.push_back(std::move(pipeline));
    }
    const auto rows = some_rows();
    for (StreamStats& stats : streams)
      for (const Instants& row : rows) stats.done(row), stats.written(row);
  }

  ServiceStats service;
  ZeromqStats socket;
  WorkerServerStats worker_server;
  std::deque<ThreadStats> thread_stats;
  std::deque<TransportStats> transports;
  std::deque<StreamStats> streams;
  std::deque<LaneStats> lanes;
  Sources sources;
};

// Opens descriptors, as a service with that number of clients has.
void open_descriptors(unsigned count) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  for (unsigned i = 0; i < count; ++i)
    if (dup(0) < 0) {
      std::printf("only %u descriptors could be opened\n", i);
      return;
    }
}

void measure_scrapes(std::size_t threads, unsigned streams) {
  const Service service(threads);
  open_descriptors(streams);
  Exporter exporter(service.sources);
  std::vector<double> times;
  Time now(1h);
  std::size_t series = 0, bytes = 0;
  for (int i = 0; i < 101; ++i) {
    const Time began = Clock::now();
    const std::string& text = exporter.text(now += 1s);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
    bytes = text.size();
    series = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }
  std::ranges::sort(times);
  std::printf(
      "%zu threads, three pipelines, %u descriptors: %zu lines, %zu bytes; %.2f ms, at most"
      " %.2f ms\n",
      threads, streams, series, bytes, times[times.size() / 2], times.back());
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t threads = 4;
  unsigned streams = 10'000;
  bench::Options("Measure the cost of metrics")
      .add("--threads", threads, "Number of io threads")
      .add("--streams", streams, "Number of open descriptors")
      .parse(argc, argv);
  const auto rows = some_rows();
  StreamStats stats;
  measure("a counter", 1, [&](std::size_t) { stats.answered.add(); });
  measure("a histogram", 1,
          [&](std::size_t i) { stats.latency.observe(rows[i].written - rows[i].arrived); });
  measure("a row that is done (5 histograms)", 5, [&](std::size_t i) { stats.done(rows[i]); });
  measure("a row that is written (2)", 2, [&](std::size_t i) { stats.written(rows[i]); });
  measure_scrapes(threads, streams);
}
