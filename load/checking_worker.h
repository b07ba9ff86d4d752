// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <optional>
#include <thread>

#include "load/fetched_batch.h"
#include "load/row_check.h"
#include "load/streams/usage.h"
#include "workers/library/worker.h"

namespace millrace::load {

// The worker of the load generator, on its own thread: checks every row that the service hands
// over, and answers all rows if the run requires it, otherwise none. If the worker is on a device,
// the values that the device has are checked.
//
// Confined to one thread, except rows().
class CheckingWorker {
 public:
  // Starts to receive batches of an attached worker. `failed` is set if its thread ends with an
  // exception. `run` and `failed` must outlive this object. Throws std::runtime_error if the
  // pipeline's chunk rule is not supported, and DeviceFailure.
  CheckingWorker(Worker worker, const RunFacts& run, std::atomic<bool>& failed);
  ~CheckingWorker();

  // CPU time that its thread has used.
  Duration cpu() { return cpu_of_thread(thread_.native_handle()); }

  // Number of returned rows with frames. Thread-safe.
  std::uint64_t rows() const { return rows_; }

  // Waits for the ends of streams that are on their way, for at most 5 s: some protocols end a
  // stream before its last row is done. Then sends Bye and waits until the service has answered it.
  // Rethrows an exception of the thread.
  WorkerOutcome finish();

 private:
  void work();
  void report_ends();
  void check_batch(const WorkerBatch& batch);
  void send_messages(const WorkerBatch& batch);

  Worker worker_;
  std::atomic<bool>& failed_;
  const bool answers_;
  const std::uint32_t messages_;  // to send for each row
  RowCheck row_check_;
  std::optional<FetchedBatch> fetched_;  // if the worker is on a device
  std::atomic<std::uint64_t> rows_{0};
  // Streams without an end. The thread keeps `all_ended_` once `finishing_` is set and it is 0.
  std::atomic<std::uint64_t> unended_{0};
  std::atomic<bool> finishing_{false}, reported_{false};
  std::promise<void> all_ended_;
  std::exception_ptr failure_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace millrace::load
