// SPDX-License-Identifier: Apache-2.0
// The running service from the socket of a client to the hands of a worker: `millrace serve` as a
// process of its own, streams over WebSocket in real time from one thread of this one, the worker
// on another. Packets carry when they were due and when they were sent. Each run stands between
// two of a control that does only what cannot be avoided.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/loopback_control.h"
#include "bench/measured_run.h"

using namespace millrace;
using namespace millrace::bench;

namespace {

struct Arguments {
  std::filesystem::path program;
  std::uint32_t streams = 0;
  double seconds = 20;
  std::vector<double> max_wait;  // ms
};

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

double microseconds(Duration time, double per) {
  return std::chrono::duration<double, std::micro>(time).count() / per;
}

class Bench {
 public:
  explicit Bench(const Arguments& arguments)
      : program_(arguments.program),
        schedule_(arguments.streams, duration_of(arguments.seconds)),
        control_schedule_(arguments.streams, duration_of(arguments.seconds / 4)) {}

  // No row waits for others: all the latency is the service's and the machine's.
  bool added_latency() {
    auto before = run_control(packets_, control_schedule_, {});
    const auto run = measure(program_, packets_, schedule_, {});
    auto after = run_control(packets_, control_schedule_, {});
    Latencies since_due, since_sent;
    for (const auto& row : run.seen.rows) {
      if (row.due < schedule_.counted_from()) continue;
      since_due.add(row.taken - row.due);
      since_sent.add(row.taken - row.sent);
    }
    std::printf("max_wait 0: to a worker that has taken the batch\n");
    Latencies::print_heading("us, since the packet was");
    before.since_due.print("due,  control");
    since_due.print("due,  millrace");
    after.since_due.print("due,  control");
    before.since_sent.print("sent, control");
    since_sent.print("sent, millrace");
    after.since_sent.print("sent, control");
    run.print_losses();
    print_cpu(run, static_cast<double>(since_due.count()));
    return run.whole();
  }

  // Batches that do not fill close when their oldest row has waited for `wait`.
  bool deadline(Duration wait) {
    auto before = run_control(packets_, control_schedule_, wait);
    const auto run = measure(program_, packets_, schedule_, wait);
    auto after = run_control(packets_, control_schedule_, wait);
    Latencies closed;
    std::size_t others = 0;
    for (const auto& batch : run.seen.batches) {
      if (batch.due < schedule_.counted_from()) continue;
      if (batch.trigger == Trigger::deadline)
        closed.add(batch.closed - batch.sent - wait);
      else
        ++others;
    }
    const std::string title = "max_wait " + std::to_string(wait / std::chrono::microseconds(1)) +
                              " us: us beyond it, since sent";
    Latencies::print_heading(title);
    before.since_sent.print("control: read, timer");
    closed.print("millrace: the oldest row, its batch closed");
    after.since_sent.print("control: read, timer");
    std::printf(
        "%zu batches at their deadline, %zu otherwise, %.2f rows per batch\n", closed.count(),
        others,
        static_cast<double>(run.seen.rows.size()) / static_cast<double>(run.seen.batches.size()));
    run.print_losses();
    return run.whole();
  }

 private:
  void print_cpu(const MeasuredRun& run, double chunks) const {
    const CpuTimes& cpu = run.cpu;
    const Duration others = cpu.machine - cpu.process - cpu.thread - cpu.rest;
    const Duration length = schedule_.end() - schedule_.counted_from();
    const double core = microseconds(length, 100);
    std::printf(
        "CPU us per chunk: service %.1f, clients %.1f, worker %.1f; %.2f rows per batch\n",
        microseconds(cpu.process, chunks), microseconds(cpu.thread, chunks),
        microseconds(cpu.rest, chunks),
        static_cast<double>(run.seen.rows.size()) / static_cast<double>(run.seen.batches.size()));
    std::printf("%% of a core: service %.1f, clients %.1f, worker %.1f, others %.1f\n",
                microseconds(cpu.process, core), microseconds(cpu.thread, core),
                microseconds(cpu.rest, core), microseconds(others, core));
  }

  const std::filesystem::path program_;
  const Packets packets_;
  Schedule schedule_, control_schedule_;
};

// Both ends of the control's connections are in this process.
void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::filesystem::path built_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
         "service/millrace";
}

int run(Arguments arguments) {
  if (arguments.streams == 0) arguments.streams = arguments.max_wait.empty() ? 500 : 20;
  raise_descriptor_limit();
  std::printf("%u streams of 100 ms packets, %.0f s\n", arguments.streams, arguments.seconds);
  Bench bench(arguments);
  if (arguments.max_wait.empty()) return bench.added_latency() ? 0 : 1;
  bool whole = true;
  for (const double wait : arguments.max_wait) whole &= bench.deadline(duration_of(wait / 1000));
  return whole ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("From a client's socket to a worker: latency, CPU, and when batches close");
  app.add_option("--millrace", arguments.program, "The program; else of this build tree")
      ->envname("MILLRACE");
  app.add_option("--streams", arguments.streams, "At a time; else 500, with --max-wait 20");
  app.add_option("--seconds", arguments.seconds, "That count, of each run")->capture_default_str();
  app.add_option("--max-wait", arguments.max_wait, "When do batches close that do not fill (ms)");
  CLI11_PARSE(app, argc, argv);
  try {
    if (arguments.program.empty()) arguments.program = built_program();
    return run(std::move(arguments));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "end_to_end_bench: %s\n", error.what());
    return 1;
  }
}
