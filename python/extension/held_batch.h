// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/extension/batch_source.h"
#include "workers/library/worker_batch.h"

namespace millrace::python {

// A batch for Python. Its arrays are views of the source's memory, which they keep alive. If the
// source lends batches, they keep the batch alive instead, and the memory goes back with the last
// of them. Otherwise they show a later batch after done(). On a device they are DeviceMemory.
//
// Requires: the GIL.
class HeldBatch {
 public:
  // `keeps` is the Python object of `source`; it is kept alive.
  HeldBatch(WorkerBatch batch, BatchSource& source, nanobind::object keeps);

  // Throws std::runtime_error after done() or fail().
  const WorkerBatch& open() const;

  bool is_open() const { return open_; }
  const BatchSource& source() const { return *source_; }
  // The object that keeps the memory of this batch's arrays alive. `self`: this object in Python.
  nanobind::handle owner(nanobind::handle self) const {
    return source_->lends() ? self : nanobind::handle(keeps_);
  }

  // Work that is put on this CUDA stream from now on finds the batch, and may finish after done().
  void use_on(std::uintptr_t stream) const;

  // If the service is lost, the batch counts as done, and next() reports the loss. If the device
  // fails, the batch is not done, and WorkerError is thrown.
  // Returns a line for each answer that has no text, for the log.
  std::vector<std::string> done(nanobind::handle answers, nanobind::handle marks,
                                nanobind::handle endpoint, nanobind::handle encode);
  // Gives the batch back as failed: `error`, an exception, is the answer to each of its rows.
  void fail(nanobind::handle error);

 private:
  struct Drop {
    void operator()(WorkerBatch* batch) const noexcept;
    BatchSource* source = nullptr;
  };

  nanobind::object keeps_;
  BatchSource* source_;
  std::unique_ptr<WorkerBatch, Drop> batch_;  // dropped before `keeps_`
  bool open_ = true;
};

// The next batch of a source, which is `self` in Python, or None.
template <class Source>
nanobind::object next_batch(nanobind::handle_t<Source> self, std::optional<double> seconds) {
  auto& source = nanobind::cast<Source&>(self);
  auto batch = source.next(seconds);
  if (!batch) return nanobind::none();
  return nanobind::cast(HeldBatch(std::move(*batch), source, nanobind::borrow(self)));
}

}  // namespace millrace::python
