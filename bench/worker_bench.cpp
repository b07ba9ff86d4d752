// SPDX-License-Identifier: Apache-2.0
// Measures how many batches of 64 rows per second a worker without a model receives and returns: in
// Python and in C++, alternately, each in its own process with the same source of batches.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/host/slab_layout.h"
#include "tests/workers/library/fake_service.h"
#include "workers/library/worker.h"

namespace millrace {
namespace {

constexpr std::uint32_t rows = 64, width = 1600, credits = 2;
constexpr std::uint64_t warm_up = 2000;

constexpr const char* python_worker = R"(
import sys, millrace
with millrace.Worker(sys.argv[1], reattach=False) as worker:
    for batch in worker:
        batch.done()
)";
constexpr const char* python_reader = R"(
import sys, millrace
with millrace.Worker(sys.argv[1], reattach=False) as worker:
    for batch in worker:
        batch.data, batch.slot, batch.reset, batch.size
        batch.done([0.5] * batch.rows)
)";

// The C++ worker. Runs in a child process.
void work(const std::string& url) {
  Worker worker(url);
  while (auto batch = worker.next()) worker.done(*batch);
}

pid_t start(const std::function<void()>& child) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  try {
    child();
    ::_exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    ::_exit(1);
  }
}

HandedBatch batch_of_rows() {
  HandedBatch batch;
  batch.rows = rows;
  batch.width = width;
  batch.framed.resize(rows);
  for (std::uint32_t i = 0; i < rows; ++i) {
    batch.framed[i].stream = StreamId{i};
    batch.framed[i].slot = i;
    batch.framed[i].size = width;
  }
  return batch;
}

// Resident memory of a process in KiB.
long resident(pid_t process) {
  std::ifstream pages("/proc/" + std::to_string(process) + "/statm");
  long all = 0, here = 0;
  pages >> all >> here;
  return here * (::sysconf(_SC_PAGESIZE) / 1024);
}

struct Outcome {
  double rate = 0;  // batches per second
  long grown = 0;   // growth of the worker's memory, KiB
};

// Measures `batches` batches of a worker.
Outcome measure(std::uint64_t batches, const std::function<void(const std::string& url)>& worker) {
  FakeService service;
  service.welcome.slots = rows;
  service.welcome.rows = rows;
  service.welcome.width = width;
  service.welcome.width_buckets = {width};
  service.welcome.slab_bytes = layout_of({.rows = rows, .marks = rows, .width = width}).bytes;
  const std::string url = service.url();
  const pid_t process = start([&] { worker(url); });
  service.expect_worker();
  service.send_welcome();

  HandedBatch batch = batch_of_rows();
  const auto send = [&](std::uint64_t id) {
    batch.id = BatchId{id};
    batch.slab = static_cast<std::uint32_t>(id % service.welcome.slabs);
    service.send(batch);
  };
  for (std::uint64_t id = 1; id <= credits; ++id) send(id);
  Time begin = Clock::now();
  long memory = 0;
  for (std::uint64_t done = 1; done <= warm_up + batches; ++done) {
    (void)service.receive<Done>();
    if (done == warm_up) {
      memory = resident(process);
      begin = Clock::now();
    }
    send(done + credits);
  }
  const std::chrono::duration<double> took = Clock::now() - begin;
  memory = resident(process) - memory;
  service.send(Bye{});
  service.hang_up();
  int status = 0;
  ::waitpid(process, &status, 0);
  if (status != 0) throw std::runtime_error("the worker failed");
  return {static_cast<double>(batches) / took.count(), memory};
}

Outcome median(std::vector<Outcome> outcomes) {
  std::ranges::sort(outcomes, {}, &Outcome::rate);
  return outcomes[outcomes.size() / 2];
}

void run(const std::string& python, std::uint64_t batches, int rounds) {
  const auto python_runs = [&](const char* program) {
    return [&python, program](const std::string& url) {
      ::execl(python.c_str(), python.c_str(), "-c", program, url.c_str(), nullptr);
      throw std::runtime_error(python + " cannot be started");
    };
  };
  struct Line {
    const char* name;
    std::function<void(const std::string&)> worker;
    std::vector<Outcome> outcomes = {};
  };
  std::array lines{Line{"C++", work}, Line{"Python", python_runs(python_worker)},
                   Line{"Python that reads arrays and answers", python_runs(python_reader)}};
  for (int round = 0; round < rounds; ++round)
    for (Line& line : lines) line.outcomes.push_back(measure(batches, line.worker));

  std::printf("batches of %u rows, medians of %d runs of %llu batches\n", rows, rounds,
              static_cast<unsigned long long>(batches));
  std::printf("%-42s %10s %6s %12s\n", "", "batches/s", "", "KiB grown");
  const double control = median(lines[0].outcomes).rate;
  for (const Line& line : lines) {
    const Outcome outcome = median(line.outcomes);
    std::printf("%-42s %10.0f %4.0f %% %12ld\n", line.name, outcome.rate,
                100 * outcome.rate / control, outcome.grown);
  }
}

}  // namespace
}  // namespace millrace

// worker_bench PYTHON [BATCHES [ROUNDS]], where PYTHON is an interpreter with the package millrace.
int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: worker_bench PYTHON [BATCHES [ROUNDS]]\n");
    return 2;
  }
  millrace::run(arguments[1], count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 50000,
                count > 3 ? std::atoi(arguments[3]) : 5);
}
