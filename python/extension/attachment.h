// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/answer.h"
#include "python/extension/batch_source.h"
#include "python/extension/without_gil.h"
#include "workers/library/worker.h"

namespace millrace::python {

// One connection to the service, for Python: millrace::Worker, which waits without the GIL and runs
// Python's signal handlers. It does not reconnect; millrace/worker.py attaches again.
//
// next, use_on, done and fail: confined to one thread. Everything else: thread-safe.
class Attachment : public BatchSource {
 public:
  Attachment(const std::string& url, const WorkerSettings& settings,
             const std::function<void()>& meanwhile)
      : worker_(url, settings, meanwhile), credits_(settings.credits) {}
  ~Attachment() override {
    const WithoutGil waits;  // until the service has taken the last messages
    const Worker ends(std::move(worker_));
  }

  const Worker& worker() const { return worker_; }

  // Waits without the GIL, and runs Python's signal handlers meanwhile. Returns nullopt if no batch
  // came within `seconds`, if no more batches will come, or after interrupt(). Throws
  // std::runtime_error if the caller holds as many batches as there are credits.
  std::optional<WorkerBatch> next(std::optional<double> seconds);

  const FrameType& frames() const override { return worker_.frames(); }
  int ordinal() const override { return worker_.ordinal(); }

  // Require that the caller does not hold the GIL. done() and fail() throw WorkerError only if the
  // device fails; a lost service is reported by next().
  void use_on(const WorkerBatch& batch, DeviceStream stream) override {
    worker_.use_on(batch, stream);
  }
  void done(WorkerBatch& batch, std::span<const Answer> answers,
            std::span<const Answer> mark_answers) override;
  void fail(WorkerBatch& batch, const std::string& why) override;

  // Waits without the GIL, and runs Python's signal handlers meanwhile.
  bool send(std::uint64_t stream, const Answer& message, std::optional<double> seconds);
  void answer(std::uint64_t stream, std::uint64_t seq, const Answer& answer);

  void bye() { worker_.bye(); }
  void close() { worker_.close(); }
  void interrupt() {
    interrupted_.store(true);
    worker_.interrupt();
  }

 private:
  template <class Gives>
  void give_back(Gives gives);
  template <class Sends>
  auto sent(Sends sends);

  Worker worker_;
  std::size_t credits_;
  std::atomic<std::size_t> taken_{0};  // taken and not done
  std::atomic<bool> interrupted_{false};
};

}  // namespace millrace::python
