// SPDX-License-Identifier: Apache-2.0
// From the moment a batch closes until a worker that slept has taken it: over a socket with shared
// memory, and over TCP with the values in the message. With --max-wait: how much later than its
// deadline a batch closes. The service's half, hub and doors, is a thread of this process, the
// worker a process of its own. Beside each a control: a few bytes to a process that sleeps, a
// timer.
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/batch_source.h"
#include "bench/quantiles.h"
#include "load/streams/histogram.h"
#include "transport/net/net.h"

namespace millrace::bench {
namespace {

using namespace std::chrono_literals;
using load::Histogram;

struct Arguments {
  std::size_t batches = 5000;
  std::int64_t pause = 2000;  // us
  std::int64_t max_wait = 0;  // us
  bool local = false;         // alone
  bool json = false;
};

// A line of the table, and its name in JSON.
struct Measured {
  const char* name;
  const char* key;
  Histogram times;
};

// The other end of a socket says when it woke.
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

// How late a timer is that an io_context waits for.
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

BatchSource::Times give(const Arguments& arguments, std::string (BatchSource::*place)() const) {
  BatchSource source(std::chrono::microseconds(arguments.pause),
                     std::chrono::microseconds(arguments.max_wait));
  const std::string url = (source.*place)();
  const Child worker([&] { take_batches(url); });
  return source.run(arguments.batches);
}

std::vector<Measured> measure(const Arguments& arguments) {
  std::vector<Measured> all;
  if (arguments.max_wait > 0) {
    all.push_back({"control: a timer", "control",
                   fire(arguments.batches, std::chrono::microseconds(arguments.max_wait))});
    all.push_back({"a batch", "batch", give(arguments, &BatchSource::local).late});
    return all;
  }
  all.push_back({"control: a few bytes to a sleeping process", "control",
                 wake(arguments.batches, std::chrono::microseconds(arguments.pause))});
  all.push_back({"unix:", "unix", give(arguments, &BatchSource::local).handed});
  if (!arguments.local)
    all.push_back({"tcp:", "tcp", give(arguments, &BatchSource::remote).handed});
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
  std::printf("%zu batches of %u rows of %u frames, one every %lld us\n", arguments.batches,
              arguments.max_wait > 0 ? 1 : BatchSource::rows, BatchSource::width,
              static_cast<long long>(arguments.pause));
  print_heading(arguments.max_wait > 0 ? "us, from its deadline to closed"
                                       : "us, from closed to taken");
  for (const Measured& one : all) print_row(one.name, one.times);
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Arguments arguments;
  CLI::App app("From a closed batch to a worker that slept");
  app.add_option("--batches", arguments.batches, "Of each run")->capture_default_str();
  app.add_option("--pause", arguments.pause, "us between two")->capture_default_str();
  app.add_option("--max-wait", arguments.max_wait, "us: when do batches close that do not fill");
  app.add_flag("--unix", arguments.local, "Over the socket alone");
  app.add_flag("--json", arguments.json, "A line of JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    millrace::bench::print(millrace::bench::measure(arguments), arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "handover_bench: %s\n", error.what());
    return 1;
  }
}
