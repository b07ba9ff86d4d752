// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "python/extension/datasets/ensured_gil.h"

namespace millrace::python {

// A Python object that C++ objects keep, which may be destroyed on any thread, with the GIL or
// without it.
class KeptObject {
 public:
  // Requires: the GIL.
  explicit KeptObject(nanobind::object object) : object_(object.release()) {}
  KeptObject(KeptObject&& other) noexcept
      : object_(std::exchange(other.object_, nanobind::handle())) {}
  KeptObject& operator=(KeptObject&&) = delete;
  ~KeptObject() {
    if (!object_.is_valid() || !Py_IsInitialized()) return;
    const EnsuredGil held;
    object_.dec_ref();
  }

  nanobind::handle get() const { return object_; }

 private:
  nanobind::handle object_;
};

}  // namespace millrace::python
