// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "workers/worker_batch.h"

namespace millrace::python {

class Attachment;

// A batch as Python holds it. Its arrays are views of the worker's memory, which they keep; what
// they show after done() is some later batch. Requires the GIL.
class HeldBatch {
 public:
  // `attachment` is the Python object that `worker` belongs to.
  HeldBatch(WorkerBatch batch, Attachment& worker, nanobind::object attachment);

  // Raises RuntimeError after done().
  const WorkerBatch& open() const;

  nanobind::object data() const;
  nanobind::object slot() const;
  nanobind::object left() const;
  nanobind::object size() const;
  nanobind::object right() const;
  nanobind::object flags() const;

  // The batch is done even if the service is gone; next() tells.
  void done(nanobind::handle answers, nanobind::handle marks, nanobind::handle encode);

 private:
  template <class T>
  nanobind::object array(std::span<const T> values) const;

  WorkerBatch batch_;
  Attachment* worker_;
  nanobind::object attachment_;
  bool open_ = true;
};

void add_batch(nanobind::module_& module);

}  // namespace millrace::python
