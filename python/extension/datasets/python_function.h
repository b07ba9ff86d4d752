// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>

#include "python/extension/datasets/kept_object.h"
#include "training/contract/catalog.h"
#include "training/filling/streams/stream_function.h"

namespace millrace::python {

// A function of Python that changes whole streams (augmentation). The Python object has
// `change(epoch, stream, copy, name, meta, frames, companions)`, which returns a pair of contiguous
// arrays with the same types, and `frames(epoch, copy, name, frames)`, which returns a number.
class PythonFunction final : public training::StreamFunction {
 public:
  // Requires: the GIL.
  PythonFunction(std::shared_ptr<const training::Catalog> catalog, nanobind::object function);

  Result<void, training::ReadError> change(const training::StreamCopy& stream,
                                           Content& content) override;
  // A failure has the traceback.
  std::uint64_t frames(const training::StreamCopy& stream, std::uint64_t frames) override;

 private:
  std::shared_ptr<const training::Catalog> catalog_;
  KeptObject function_;
};

}  // namespace millrace::python
