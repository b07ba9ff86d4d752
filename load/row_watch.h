// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>

#include "load/row_check.h"
#include "load/streams/usage.h"
#include "workers/library/worker.h"

namespace millrace::load {

// The worker of the benchmark, on a thread of its own: checks every row that the service hands
// over, and answers all of them where the run says so, else none.
//
// Confined to one thread but for that.
class RowWatch {
 public:
  // A worker that is attached. Takes batches from now on; `run` outlives it. Throws
  // std::runtime_error where it does not know the pipeline's chunk rule.
  RowWatch(Worker worker, const RunFacts& run);
  ~RowWatch();

  // CPU time of its thread until now.
  Duration cpu() { return cpu_of_thread(thread_.native_handle()); }

  // Rows with frames that it has given back until now. For any thread.
  std::uint64_t rows() const { return rows_; }

  // Says Bye, and waits until the service has ended the worker. Throws what went wrong.
  WorkerOutcome finish();

 private:
  void work();
  void look(const WorkerBatch& batch);

  Worker worker_;
  const bool answers_;
  RowCheck check_;
  std::atomic<std::uint64_t> rows_{0};
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace millrace::load
