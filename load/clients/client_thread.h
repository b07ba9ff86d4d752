// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <latch>
#include <memory>
#include <thread>

#include "load/clients/simulated_clients.h"

namespace millrace::load {

// Synchronizes the threads of a run: no stream sends before all are open, and no thread ends before
// its CPU time is read. Thread-safe.
struct Gate {
  explicit Gate(unsigned threads) : opened(threads) {}

  std::latch opened;  // counted down by each thread whose streams are open
  // The schedule has started: threads send. The CPU time was read: threads may end.
  std::atomic<bool> started{false}, measured{false};
  std::atomic<bool> abandoned{false};  // the run has failed: threads end at once

  // Sets one of the flags and wakes the threads that wait for it.
  static void open(std::atomic<bool>& what) {
    what = true;
    what.notify_all();
  }
};

// A thread of simulated clients: opens their streams, and sends by the schedule once the gate has
// started. Apart from its own thread, confined to the thread that created it.
class ClientThread {
 public:
  // `offset` and `stride` as in SimulatedClients. `run` must outlive this object.
  ClientThread(const RunFacts& run, std::uint32_t offset, std::uint32_t stride,
               std::unique_ptr<LoadTransport> transport);

  // `gate` must outlive this object.
  void start(Gate& gate);
  // Waits until `time`, or until all streams are over.
  void wait_until(Time time) { finished_.wait_for(time - Clock::now()); }
  // Number of packets sent until now.
  std::uint64_t packets() const { return packets_; }
  // Waits for the end of the thread. Rethrows its exception.
  ClientOutcome& outcome();

 private:
  void work(Gate& gate);
  void run_part(void (ClientThread::*part)(const Gate&), const Gate& gate);
  void open(const Gate& gate);
  void stream(const Gate& gate);

  const Schedule& schedule_;
  const std::unique_ptr<LoadTransport> transport_;
  SimulatedClients clients_;
  std::atomic<std::uint64_t> packets_{0};
  std::promise<void> done_;
  std::future<void> finished_;
  std::exception_ptr failure_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace millrace::load
