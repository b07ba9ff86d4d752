// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "python/extension/batch_source.h"
#include "python/extension/datasets/dataset_keys.h"
#include "training/filling/loader.h"

namespace millrace::python {

// The batches of a plan for Python: a Loader, whose buffers go back when nothing in Python refers
// to them. Belongs to the process that made it: in a forked process, it only drops its references.
//
// drop() is thread-safe. All else is confined to one thread.
class PlanLoader final : public BatchSource {
 public:
  // Reads every `stride`-th step. `former`: as Loader::follow(), or null.
  PlanLoader(const DatasetPlan& made, std::uint64_t stride, std::uint64_t first_step,
             const PlanLoader* former);
  ~PlanLoader() override;

  // The next batch, or nullopt at the end of the epoch, or after `seconds`. Runs Python's signal
  // handlers while it waits. Requires: the GIL. Throws what the handlers throw,
  // nanobind::python_error with millrace.DataError, and the exceptions of Loader.
  std::optional<WorkerBatch> next(std::optional<double> seconds);

  // Throws std::runtime_error in a forked process, and if threads were left behind.
  training::Loader& loader();
  // The position of the next batch, also in a forked process.
  training::PlanPosition position() const { return loader_->position(); }
  std::uint64_t stride() const { return stride_; }
  // As Loader::stop(), but waits for at most 100 ms. If a call of Python, of a reader, or the
  // distribution of an epoch takes longer, its thread is left behind: this loader gives no further
  // batch, and what the call returns is dropped. Does nothing in a forked process.
  void stop();
  bool left_behind() const { return left_behind_; }
  training::LoaderStats stats() const { return loader_->stats(); }

  const FrameType& frames() const override { return frames_; }
  int ordinal() const override { return loader_->ordinal(); }
  std::span<const CompanionFormat> companions() const override { return catalog_->companions(); }
  bool lends() const override { return true; }
  std::optional<StreamText> text_of(std::uint64_t stream) const override;
  void use_on(const WorkerBatch& batch, DeviceStream stream) override {
    loader_->use_on(batch, stream);
  }
  void drop(WorkerBatch& batch) noexcept override;

 private:
  std::optional<WorkerBatch> take(Time until);
  bool is_forked() const;
  bool stop_soon();

  std::shared_ptr<const training::Catalog> catalog_;
  FrameType frames_;
  const std::uint64_t stride_;
  bool fills_itself_;
  pid_t process_;
  bool left_behind_ = false;
  std::unique_ptr<training::Loader> loader_;
};

}  // namespace millrace::python
