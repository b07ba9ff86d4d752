// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace::python {

// An array of a batch, contiguous: the tensor [rows, width, values], or a column [rows].
struct ArrayLayout {
  const void* begin = nullptr;
  std::vector<std::size_t> shape;
  nanobind::dlpack::dtype dtype;
};

// An array of a batch on a CUDA device. millrace/device_array.py exports it to frameworks. Keeps
// its batch alive. Throws std::runtime_error after the batch was given back.
//
// Requires: the GIL.
class DeviceMemory {
 public:
  // `batch` is a HeldBatch.
  DeviceMemory(nanobind::object batch, ArrayLayout layout);

  int ordinal() const;
  std::uintptr_t address() const;
  nanobind::tuple shape() const;
  std::string dtype() const;  // in NumPy's notation: "f4"

  // Work that is put on the stream from now on finds the batch, and may finish after done().
  void use_on(std::uintptr_t stream) const;

  // A DLPack capsule, without synchronization.
  nanobind::object capsule() const;

 private:
  const class HeldBatch& open() const;

  nanobind::object batch_;
  ArrayLayout layout_;
};

}  // namespace millrace::python
