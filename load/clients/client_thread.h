// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <latch>
#include <memory>
#include <thread>

#include "load/clients/crowd.h"

namespace millrace::load {

// How the threads of a run go on together: all streams are to be open before the first sends, and
// nobody ends before what it used is read. Thread-safe.
struct Gate {
  explicit Gate(unsigned threads) : opened(threads) {}

  std::latch opened;
  std::atomic<bool> started{false}, measured{false};
  std::atomic<bool> abandoned{false};  // all end at once

  static void open(std::atomic<bool>& what) {
    what = true;
    what.notify_all();
  }
};

// The clients of one thread: opens their streams, and streams by the schedule once the gate says
// that it has begun. Confined to the thread that made it, but for what that runs.
class ClientThread {
 public:
  // Places as Crowd has them. `run` outlives it.
  ClientThread(const RunFacts& run, std::uint32_t offset, std::uint32_t stride,
               std::unique_ptr<ClientDoor> door);

  // `gate` outlives it.
  void start(Gate& gate);
  // Until then, or until it has no more to do.
  void wait_until(Time time) { over_.wait_for(time - Clock::now()); }
  // Sent until now.
  std::uint64_t packets() const { return packets_; }
  // Waits for its end. Throws what went wrong.
  ClientOutcome& outcome();

 private:
  void work(Gate& gate);
  void guarded(void (ClientThread::*part)(const Gate&), const Gate& gate);
  void open(const Gate& gate);
  void stream(const Gate& gate);

  const Schedule& schedule_;
  const std::unique_ptr<ClientDoor> door_;
  Crowd crowd_;
  std::atomic<std::uint64_t> packets_{0};
  std::promise<void> done_;
  std::future<void> over_;
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace millrace::load
