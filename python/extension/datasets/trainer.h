// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "python/extension/batch_source.h"
#include "workers/library/worker.h"
#include "workers/plan/plan_text.h"

namespace millrace::python {

// One connection of a trainer to a server of batches, for Python. A batch goes back to the server
// with the first call of next() after nothing in Python refers to it. It does not reconnect;
// millrace/batch_server.py attaches again.
//
// drop() is called with the GIL on any thread. All else is confined to one thread.
class Trainer final : public BatchSource {
 public:
  Trainer(const std::string& url, const WorkerSettings& settings,
          const std::function<void()>& meanwhile);
  ~Trainer() override;

  const Worker& worker() const { return *worker_; }

  // The next batch; nullopt if none came within `seconds`, or if no more batches will come. Runs
  // Python's signal handlers while it waits. Requires: the GIL. Throws std::runtime_error if as
  // many batches are kept as there are credits, and WorkerError.
  std::optional<WorkerBatch> next(std::optional<double> seconds);
  // Ends the connection as agreed: the rank is free when it returns. Waits for at most a second.
  void leave();

  // Counts of the batches that were taken.
  struct Counts {
    std::uint64_t batches = 0;
    std::uint64_t frames = 0;   // columns of their tensors, padding included
    std::uint64_t padding = 0;  // padding columns among these
    std::uint64_t bodies = 0;   // frames of the bodies of their rows
  };
  const Counts& counts() const { return counts_; }
  // Batches to which Python refers.
  std::size_t kept() const { return taken_ - dropped_.size(); }

  const FrameType& frames() const override { return worker_->frames(); }
  int ordinal() const override { return worker_->ordinal(); }
  std::span<const CompanionFormat> companions() const override { return plan_.companions; }
  bool lends() const override { return true; }
  void use_on(const WorkerBatch& batch, DeviceStream stream) override {
    worker_->use_on(batch, stream);
  }
  void drop(WorkerBatch& batch) noexcept override;

 private:
  void return_dropped();
  void count(const WorkerBatch& batch);
  bool is_forked() const;

  const std::size_t credits_;
  const pid_t process_;
  std::unique_ptr<Worker> worker_;
  PlanText plan_;
  Counts counts_;
  std::size_t taken_ = 0;             // taken and not returned
  std::vector<WorkerBatch> dropped_;  // and not returned; guarded by the GIL
};

}  // namespace millrace::python
