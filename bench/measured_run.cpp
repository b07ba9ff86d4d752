// SPDX-License-Identifier: Apache-2.0
#include "bench/measured_run.h"

#include <algorithm>
#include <cstdio>

#include "bench/service_process.h"
#include "bench/stream_load.h"

namespace millrace::bench {

namespace {

constexpr std::uint32_t batch_rows = 64;

std::string pipeline(std::uint32_t streams, Duration max_wait) {
  const auto microseconds = std::chrono::round<std::chrono::microseconds>(max_wait).count();
  return "[[pipeline]]\nslots = " + std::to_string(std::max(streams, batch_rows)) +
         "\nchunk = { size = \"100ms\" }\nbatch = { rows = " + std::to_string(batch_rows) +
         ", max_wait = \"" + std::to_string(microseconds) + "us\" }\n";
}

}  // namespace

MeasuredRun measure(const std::filesystem::path& program, const Packets& packets,
                    Schedule& schedule, Duration max_wait) {
  ServiceProcess service(program, pipeline(schedule.streams(), max_wait));
  RowCheck worker(service.workers(), packets, schedule.streams());
  StreamLoad load(packets, schedule);
  CpuTimes before, after;
  const auto sent = load.run(
      service.clients(), [&] { before = cpu_times(service.pid()); },
      [&] { after = cpu_times(service.pid()); });
  service.stop();

  MeasuredRun run{
      .seen = worker.finish(), .cpu = after - before, .broken = sent.broken, .why = sent.why};
  run.lost = run.seen.skipped;
  for (std::uint32_t i = 0; i < schedule.streams(); ++i) {
    run.sent += sent.packets[i];
    run.lost += sent.packets[i] - run.seen.expected[i];
  }
  return run;
}

void MeasuredRun::print_losses() const {
  std::printf(
      "%lu packets, lost %lu, twice or out of order %lu, damaged %lu; streams broken %u%s\n", sent,
      lost, seen.repeated, seen.damaged, broken, why.empty() ? "" : (" (" + why + ")").c_str());
}

}  // namespace millrace::bench
