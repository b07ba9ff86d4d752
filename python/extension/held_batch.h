// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "workers/library/worker_batch.h"

namespace millrace::python {

class Attachment;

// A batch as Python holds it. Its arrays are views of the worker's memory, which they keep; what
// they show after done() is some later batch. On a device they are DeviceMemory. Requires the GIL.
class HeldBatch {
 public:
  // `attachment` is the Python object that `worker` belongs to.
  HeldBatch(WorkerBatch batch, Attachment& worker, nanobind::object attachment);

  // Raises RuntimeError after done().
  const WorkerBatch& open() const;

  bool is_open() const { return open_; }

  // Of the CUDA device that it lies on; -1: the host.
  int ordinal() const;
  const FrameType& frames() const;
  // What keeps its memory.
  nanobind::handle owner() const { return attachment_; }

  // What is put on that stream of the device from here on finds the batch, and done() lets it
  // finish.
  void use_on(std::uintptr_t stream) const;

  // The batch is done even if the service is gone; next() tells. One whose device fails is not.
  void done(nanobind::handle answers, nanobind::handle marks, nanobind::handle encode);
  // Gives it back as failed: `error`, an exception, is the answer to each of its rows.
  void fail(nanobind::handle error);

 private:
  WorkerBatch batch_;
  Attachment* worker_;
  nanobind::object attachment_;
  bool open_ = true;
};

void add_batch(nanobind::module_& module);

}  // namespace millrace::python
