// SPDX-License-Identifier: Apache-2.0
// Streams into Triton's sequence batcher in real time, and prints the results as a line of JSON.
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>

#include "bench/peers/triton/sequence_load.h"

namespace {

using namespace std::chrono_literals;
using millrace::bench::Clock;
using millrace::bench::LoadShape;
using millrace::bench::SequenceLoad;

struct Options {
  LoadShape shape;
  pid_t server = 0;
  int seconds = 20;
  int warm_up = 3;
  int vanish = 0;
};

double micros(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

double cpu_micros(clockid_t clock) {
  timespec used{};
  ::clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) * 1e6 + static_cast<double>(used.tv_nsec) / 1e3;
}

double quantile(const std::vector<Clock::duration>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto index = static_cast<std::size_t>(part * static_cast<double>(sorted.size()));
  return micros(sorted[std::min(index, sorted.size() - 1)]);
}

int measure(const Options& options, clockid_t server) {
  SequenceLoad load(options.shape);
  const auto begin = Clock::now() + std::chrono::seconds(options.warm_up);
  load.pace(begin);
  const std::uint64_t first = load.sent();
  const double server_before = cpu_micros(server),
               own_before = cpu_micros(CLOCK_PROCESS_CPUTIME_ID);
  load.pace(begin + std::chrono::seconds(options.seconds));
  const double server_used = cpu_micros(server) - server_before;
  const double own_used = cpu_micros(CLOCK_PROCESS_CPUTIME_ID) - own_before;
  const auto sent = static_cast<std::size_t>(load.sent() - first);
  load.finish(5s);

  std::vector<Clock::duration> latencies = load.latencies(first);
  latencies.resize(sent);
  std::erase_if(latencies, [](Clock::duration latency) { return latency < 0ns; });
  std::ranges::sort(latencies);
  const auto chunks = static_cast<double>(sent);
  std::printf(
      "{\"streams\":%u,\"sent\":%zu,\"answered\":%zu,\"errors\":%llu,\"p50_us\":%.0f,"
      "\"p99_us\":%.0f,\"server_cpu_us_per_chunk\":%.1f,\"client_cpu_us_per_chunk\":%.1f}\n",
      options.shape.streams, sent, latencies.size(), static_cast<unsigned long long>(load.errors()),
      quantile(latencies, 0.5), quantile(latencies, 0.99), server_used / chunks, own_used / chunks);
  if (load.errors() > 0) std::fprintf(stderr, "%s\n", load.last_error().c_str());
  return latencies.size() == sent ? 0 : 1;
}

int measure_disconnects(const Options& options) {
  SequenceLoad load(options.shape);
  load.pace(Clock::now() + std::chrono::seconds(options.warm_up));
  std::vector<Clock::duration> waits;
  for (int round = 0; round < options.vanish; ++round) {
    waits.push_back(load.replace(static_cast<std::uint32_t>(round) % options.shape.streams));
    load.pace(Clock::now() + 130ms);  // the next disconnect is at another phase
  }
  std::ranges::sort(waits);
  std::printf("{\"vanished\":%zu,\"min_ms\":%.1f,\"median_ms\":%.1f,\"max_ms\":%.1f}\n",
              waits.size(), micros(waits.front()) / 1e3, quantile(waits, 0.5) / 1e3,
              micros(waits.back()) / 1e3);
  return 0;
}

int run(const Options& options) {
  if (options.vanish > 0) return measure_disconnects(options);
  clockid_t server = CLOCK_PROCESS_CPUTIME_ID;
  if (::clock_getcpuclockid(options.server, &server) != 0) {
    std::fprintf(stderr, "no process %d\n", options.server);
    return 2;
  }
  return measure(options, server);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Stream into Triton's sequence batcher in real time");
  app.add_option("--target", options.shape.target, "HOST:PORT of Triton's gRPC service")
      ->required();
  app.add_option("--server-pid", options.server,
                 "Process ID of the server, to report its CPU time");
  app.add_option("--streams", options.shape.streams)->check(CLI::PositiveNumber);
  app.add_option("--per-call", options.shape.streams_per_call,
                 "Number of streams that share a gRPC stream")
      ->check(CLI::PositiveNumber);
  app.add_option("--connections", options.shape.connections,
                 "Number of connections; 0: one per gRPC stream");
  app.add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  app.add_option("--warm-up", options.warm_up, "Seconds before measuring starts");
  app.add_option(
      "--vanish", options.vanish,
      "Instead: disconnect this number of clients in turn, and measure when their place is free");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
