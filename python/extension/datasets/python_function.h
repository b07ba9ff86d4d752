// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "python/extension/datasets/kept_object.h"
#include "training/contract/catalog.h"
#include "training/filling/streams/stream_function.h"

namespace millrace::python {

// `frames` of a function failed when an epoch was distributed.
class LengthFailure : public std::runtime_error {
 public:
  LengthFailure(const std::string& why, std::uint64_t for_epoch, std::uint64_t for_stream,
                std::string its_name)
      : std::runtime_error(why), epoch(for_epoch), stream(for_stream), name(std::move(its_name)) {}

  const std::uint64_t epoch, stream;
  const std::string name;
};

// A function of Python that changes whole streams (augmentation). The Python object has
// `change(epoch, stream, copy, name, meta, frames, companions)`, which returns a pair of contiguous
// arrays with the same types, and `frames(epoch, copy, name, frames)`, which returns a number.
class PythonFunction final : public training::StreamFunction {
 public:
  // Requires: the GIL.
  PythonFunction(std::shared_ptr<const training::Catalog> catalog, nanobind::object function);

  Result<void, training::ReadError> change(const training::StreamCopy& stream,
                                           Content& content) override;
  // Throws LengthFailure with the traceback if the function fails.
  std::uint64_t frames(const training::StreamCopy& stream, std::uint64_t frames) override;

 private:
  std::shared_ptr<const training::Catalog> catalog_;
  KeptObject function_;
};

}  // namespace millrace::python
