// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/answer.h"
#include "python/extension/without_gil.h"
#include "workers/library/worker.h"

namespace millrace::python {

// One connection to the service, as Python holds it: millrace::Worker without the GIL, and with
// Python's signals. What is lost stays lost; millrace/worker.py attaches again.
//
// As millrace::Worker: next, use_on and done are confined to one thread, all else is thread-safe.
class Attachment {
 public:
  Attachment(const std::string& url, const WorkerSettings& settings,
             const std::function<void()>& meanwhile)
      : worker_(url, settings, meanwhile), credits_(settings.credits) {}
  ~Attachment() {
    const WithoutGil waits;  // for the service to take the last words
    const Worker ends(std::move(worker_));
  }

  const Worker& worker() const { return worker_; }

  // Waits without the GIL, and runs Python's signal handlers meanwhile. Nothing when no batch came
  // in so many seconds, none will come any more, or interrupt() was called. Raises RuntimeError
  // where none can come because all credits are taken.
  std::optional<WorkerBatch> next(std::optional<double> seconds);

  // These require that the caller does not hold the GIL. A service that is gone is no error of
  // done() and fail(): next() raises it. A device that fails is one.
  void use_on(const WorkerBatch& batch, DeviceStream stream) { worker_.use_on(batch, stream); }
  void done(WorkerBatch& batch, std::span<const Answer> answers,
            std::span<const Answer> mark_answers);
  void fail(WorkerBatch& batch, const std::string& why);

  void bye() { worker_.bye(); }
  void close() { worker_.close(); }
  void interrupt() {
    interrupted_.store(true);
    worker_.interrupt();
  }

 private:
  template <class Gives>
  void give_back(Gives gives);

  Worker worker_;
  std::size_t credits_;
  std::atomic<std::size_t> taken_{0};  // and not done
  std::atomic<bool> interrupted_{false};
};

void add_attachment(nanobind::module_& module);

}  // namespace millrace::python
