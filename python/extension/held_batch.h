// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "workers/library/worker_batch.h"

namespace millrace::python {

class Attachment;

// A batch for Python. Its arrays are views of the worker's memory, which they keep alive; after
// done() they show a later batch. On a device they are DeviceMemory.
//
// Requires: the GIL.
class HeldBatch {
 public:
  // `attachment` is the Python object of `worker`; it is kept alive.
  HeldBatch(WorkerBatch batch, Attachment& worker, nanobind::object attachment);

  // Throws std::runtime_error after done() or fail().
  const WorkerBatch& open() const;

  bool is_open() const { return open_; }

  // Number of the CUDA device with the batch; -1: the host.
  int ordinal() const;
  const FrameType& frames() const;
  // The object that keeps the memory alive.
  nanobind::handle owner() const { return attachment_; }

  // Work that is put on this CUDA stream from now on finds the batch, and may finish after done().
  void use_on(std::uintptr_t stream) const;

  // If the service is lost, the batch counts as done, and next() reports the loss. If the device
  // fails, the batch is not done, and WorkerError is thrown.
  void done(nanobind::handle answers, nanobind::handle marks, nanobind::handle endpoint,
            nanobind::handle encode);
  // Gives the batch back as failed: `error`, an exception, is the answer to each of its rows.
  void fail(nanobind::handle error);

 private:
  WorkerBatch batch_;
  Attachment* worker_;
  nanobind::object attachment_;
  bool open_ = true;
};

void add_batch(nanobind::module_& module);

}  // namespace millrace::python
