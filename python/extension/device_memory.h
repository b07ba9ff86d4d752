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

// Such an array on a CUDA device, for millrace/device_array.py, which says it in the words that
// frameworks understand. Keeps its batch, and raises RuntimeError once that was given back.
// Requires the GIL.
class DeviceMemory {
 public:
  // `batch` is a HeldBatch.
  DeviceMemory(nanobind::object batch, ArrayLayout layout);

  int ordinal() const;
  std::uintptr_t address() const;
  nanobind::tuple shape() const;
  std::string dtype() const;  // as NumPy has it: "f4"

  // What is put on the stream from here on finds the batch, and done() lets it finish.
  void use_on(std::uintptr_t stream) const;

  // Of DLPack, without any synchronization.
  nanobind::object capsule() const;

 private:
  const class HeldBatch& open() const;

  nanobind::object batch_;
  ArrayLayout layout_;
};

void add_device_memory(nanobind::module_& module);

}  // namespace millrace::python
