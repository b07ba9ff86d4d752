// SPDX-License-Identifier: Apache-2.0
// From the moment a batch closes until a worker that slept has taken it: over a socket with shared
// memory, and over TCP with the values in the message. The service's half, hub and doors, is a
// thread of this process, the worker a process of its own. Beside it a control: a few bytes to a
// process that sleeps.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/latencies.h"
#include "tests/support/temporary_directory.h"
#include "transport/spawn.h"
#include "workers/protocol.h"
#include "workers/remote_server.h"
#include "workers/worker.h"
#include "workers/worker_server.h"

namespace millrace::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t rows = 16, width = 1600;  // 100 ms of 16 kHz each

// A process that is killed with this object.
class Child {
 public:
  explicit Child(const std::function<void()>& does) : pid_(::fork()) {
    if (pid_ != 0) return;
    try {
      does();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "worker: %s\n", error.what());
    }
    ::_exit(0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  pid_t pid_;
};

// Answers each batch with when it was taken.
void work(const std::string& url) {
  Worker worker(url);
  while (auto batch = worker.next()) {
    const std::string taken = std::to_string(to_wire(batch->taken()));
    worker.done(*batch, std::vector<Answer>(batch->framed().size(), {Answer::Kind::text, taken}));
  }
}

HubSettings settings() {
  HubSettings settings;
  settings.pipeline = "default";
  settings.rule = {.batch = {.slots = rows, .rows = rows},
                   .worker_wait = 1h,
                   .bye_wait = 1h,
                   .patience = {.silence = 1h, .answer = 1h, .first_answer = 1h}};
  settings.seats = {.frames = {},
                    .shape = {.format = {}, .slots = rows, .rows = rows, .width = width},
                    .chunk = R"({"size":1600})"};
  settings.streams = rows;
  settings.log = [](const WorkerEvent&) {};
  return settings;
}

// Gives one batch of all streams at a time, some time after the one before was done.
class Source {
 public:
  explicit Source(Duration pause)
      : pause_(pause),
        returns_(io_, 1000, [this](std::vector<Returned>& some) { take(some); }),
        hub_(io_, settings(), slab_bytes_, stats_),
        local_(io_.get_executor(), directory_ / "workers.sock", reception()),
        remote_(io_, "tcp://127.0.0.1:0", reception(), 256 << 20),
        timer_(io_.get_executor()) {
    spawn(io_.get_executor(), local_.serve());
    remote_.start();
    for (std::uint64_t id = 0; id < rows; ++id) {
      (void)hub_.room().try_take(1);
      hub_.open(
          {.id = StreamId{id}, .name = std::to_string(id), .options = {}, .returns = &returns_});
    }
  }
  ~Source() {
    hub_.dismiss();
    io_.restart();
    io_.poll();
  }

  std::string local() const { return "unix:" + directory_ / "workers.sock"; }
  std::string remote() const { return "tcp://127.0.0.1:" + std::to_string(remote_.port()); }

  // From closed to taken, of so many batches.
  Latencies run(std::size_t batches) {
    latencies_ = {};
    wanted_ = batches;
    left_ = batches + warm_up;
    give();
    io_.restart();
    io_.run();
    return std::move(latencies_);
  }

 private:
  static constexpr std::size_t warm_up = 200;

  WorkerReception reception() {
    WorkerReception reception;
    reception.find = [this](std::string_view) { return HubHome{&hub_, &io_}; };
    reception.log = [](const WorkerEvent&) {};
    return reception;
  }

  void give() {
    waiting_ = rows;
    for (std::uint64_t id = 0; id < rows; ++id) {
      ReadyRow ready;
      ready.row.seq = seq_;
      ready.row.size = width;
      ready.row.flags = seq_ == 0 ? flag::start | flag::reset | flag::segment : 0;
      if (seq_ == 0) ready.row.reason = ResetReason::start;
      ready.window[0] = std::as_bytes(std::span(frames_));
      ready.arrived = ready.ready = Clock::now();
      hub_.add(StreamId{id}, std::move(ready));
    }
    ++seq_;
  }

  void take(std::vector<Returned>& some) {
    for (const Returned& one : some) {
      if (one.what != Returned::What::done || --waiting_ > 0) continue;
      if (left_ <= wanted_)
        latencies_.add(from_wire(std::atoll(one.answer.data.c_str())) - one.at.closed);
      if (--left_ == 0) return io_.stop();
      timer_.expires_after(pause_);
      timer_.async_wait([this](boost::system::error_code cancelled) {
        if (!cancelled) give();
      });
    }
  }

  const Duration pause_;
  const std::vector<std::int16_t> frames_ = std::vector<std::int16_t>(width, 1);
  const TemporaryDirectory directory_;
  net::io_context io_{1};
  Budget slab_bytes_{std::uint64_t{1} << 30};
  LaneStats stats_;
  ReturnBox returns_;
  Hub hub_;
  WorkerServer local_;
  RemoteServer remote_;
  Timer timer_;
  std::uint64_t seq_ = 0;
  std::uint32_t waiting_ = 0;          // rows of the batch that are not back
  std::size_t left_ = 0, wanted_ = 0;  // batches
  Latencies latencies_;
};

// The other end of a socket says when it woke.
Latencies run_control(std::size_t wakes, Duration pause) {
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
  Latencies latencies;
  for (std::size_t wake = 0; wake < wakes; ++wake) {
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

void measure(std::size_t batches, Duration pause) {
  const auto worker_at = [&](std::string (Source::*place)() const) {
    Source source(pause);
    const std::string url = (source.*place)();
    const Child worker([&] { work(url); });
    return source.run(batches);
  };
  Latencies control = run_control(batches, pause);
  Latencies local = worker_at(&Source::local);
  Latencies remote = worker_at(&Source::remote);
  std::printf("%zu batches of %u rows of %u frames, one every %lld us\n", batches, rows, width,
              static_cast<long long>(pause / 1us));
  Latencies::print_heading("us, from closed to taken");
  control.print("control: a few bytes to a sleeping process");
  local.print("unix:");
  remote.print("tcp:");
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  std::size_t batches = 5000;
  std::int64_t pause = 2000;
  CLI::App app("From a closed batch to a worker that slept");
  app.add_option("--batches", batches, "Of each run")->capture_default_str();
  app.add_option("--pause", pause, "us between two")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    millrace::bench::measure(batches, std::chrono::microseconds(pause));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "handover_bench: %s\n", error.what());
    return 1;
  }
}
