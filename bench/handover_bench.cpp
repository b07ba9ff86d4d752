// SPDX-License-Identifier: Apache-2.0
// Measures the time from when a batch closes until a sleeping worker has taken it: over a Unix
// socket with shared memory, and over TCP with the values in the message. With --max-wait, measures
// how much later than its deadline a batch closes. The hub and the worker servers run in a thread
// of this process, the worker in a separate process. The controls: a few bytes to a sleeping
// process, and a timer.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/batch_source.h"
#include "bench/options.h"
#include "bench/quantiles.h"
#include "load/streams/histogram.h"
#include "transport/net/net.h"

namespace millrace::bench {
namespace {

using namespace std::chrono_literals;
using load::Histogram;

struct Arguments {
  std::size_t batches = 5000;
  int pause = 2000;    // us
  int max_wait = 0;    // us
  bool local = false;  // only the Unix socket
  bool json = false;
};

// A line of the table; `key` is its name in JSON.
struct Measured {
  const char* name;
  const char* key;
  Histogram times;
};

// The control: a sleeping process at the other end of a socket answers with the time when it woke.
Histogram wake(std::size_t wakes, Duration pause) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("no sockets");
  const Child child([&] {
    std::array<std::int64_t, 16> message{};
    while (::read(ends[1], message.data(), sizeof message) > 0) {
      message[0] = to_wire(Clock::now());
      if (::write(ends[1], message.data(), sizeof message) <= 0) return;
    }
  });
  net::io_context io;
  Timer timer(io.get_executor());
  Histogram latencies;
  for (std::size_t turn = 0; turn < wakes; ++turn) {
    timer.expires_after(pause);
    timer.wait();
    std::array<std::int64_t, 16> message{};
    const Time sent = Clock::now();
    if (::write(ends[0], message.data(), sizeof message) <= 0 ||
        ::read(ends[0], message.data(), sizeof message) <= 0)
      throw std::runtime_error("the control has ended");
    latencies.add(from_wire(message[0]) - sent);
  }
  return latencies;
}

// The control with --max-wait: how late a timer of an io_context is.
Histogram fire(std::size_t times, Duration wait) {
  net::io_context io{1};
  Timer timer(io.get_executor());
  Histogram latencies;
  for (std::size_t turn = 0; turn < times; ++turn) {
    const Time due = Clock::now() + wait;
    timer.expires_at(due);
    timer.async_wait([&](boost::system::error_code) { latencies.add(Clock::now() - due); });
    io.restart();
    io.run();
  }
  return latencies;
}

BatchSource::Times measure_batches(const Arguments& arguments,
                                   std::string (BatchSource::*url_of)() const) {
  BatchSource source(std::chrono::microseconds(arguments.pause),
                     std::chrono::microseconds(arguments.max_wait));
  const std::string url = (source.*url_of)();
  const Child worker([&] { take_batches(url); });
  return source.run(arguments.batches);
}

std::vector<Measured> measure(const Arguments& arguments) {
  std::vector<Measured> all;
  if (arguments.max_wait > 0) {
    all.push_back({"control: a timer", "control",
                   fire(arguments.batches, std::chrono::microseconds(arguments.max_wait))});
    all.push_back({"a batch", "batch", measure_batches(arguments, &BatchSource::local).late});
    return all;
  }
  all.push_back({"control: a few bytes to a sleeping process", "control",
                 wake(arguments.batches, std::chrono::microseconds(arguments.pause))});
  all.push_back({"unix:", "unix", measure_batches(arguments, &BatchSource::local).handed});
  if (!arguments.local)
    all.push_back({"tcp:", "tcp", measure_batches(arguments, &BatchSource::remote).handed});
  return all;
}

void print(const std::vector<Measured>& all, const Arguments& arguments) {
  if (arguments.json) {
    std::string line;
    for (const Measured& one : all)
      line.append(line.empty() ? "{" : ",").append("\"") += one.key + ("\":" + json_of(one.times));
    std::printf("%s}\n", line.c_str());
    return;
  }
  std::printf("%zu batches of %u rows of %u frames, one every %d us\n", arguments.batches,
              arguments.max_wait > 0 ? 1 : BatchSource::rows, BatchSource::width, arguments.pause);
  print_heading(arguments.max_wait > 0 ? "us, from its deadline to closed"
                                       : "us, from closed to taken");
  for (const Measured& one : all) print_row(one.name, one.times);
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Arguments arguments;
  millrace::bench::Options("Measure the time from a closed batch to a sleeping worker")
      .add("--batches", arguments.batches, "Batches of each run")
      .add("--pause", arguments.pause, "Time between two batches, in us")
      .add("--max-wait", arguments.max_wait,
           "Time after which a batch that is not full closes, in us")
      .flag("--unix", arguments.local, "Measure only the Unix socket")
      .flag("--json", arguments.json, "Print a line of JSON")
      .parse(argc, argv);
  try {
    millrace::bench::print(millrace::bench::measure(arguments), arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "handover_bench: %s\n", error.what());
    return 1;
  }
}
