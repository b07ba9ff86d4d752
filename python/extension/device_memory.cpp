// SPDX-License-Identifier: Apache-2.0
#include "python/extension/device_memory.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "python/extension/held_batch.h"
#include "python/extension/parts.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
using Code = nb::dlpack::dtype_code;

char letter_of(std::uint8_t code) {
  if (code == static_cast<std::uint8_t>(Code::Bool)) return 'b';
  if (code == static_cast<std::uint8_t>(Code::UInt)) return 'u';
  return code == static_cast<std::uint8_t>(Code::Int) ? 'i' : 'f';
}

}  // namespace

DeviceMemory::DeviceMemory(nb::object batch, ArrayLayout layout)
    : batch_(std::move(batch)), layout_(std::move(layout)) {}

const HeldBatch& DeviceMemory::open() const {
  const auto& batch = nb::cast<const HeldBatch&>(batch_);
  batch.open();
  return batch;
}

int DeviceMemory::ordinal() const { return open().source().ordinal(); }

std::uintptr_t DeviceMemory::address() const {
  open();
  return reinterpret_cast<std::uintptr_t>(layout_.begin);
}

nb::tuple DeviceMemory::shape() const {
  open();
  nb::list sizes;
  for (const std::size_t size : layout_.shape) sizes.append(size);
  return nb::tuple(sizes);
}

std::string DeviceMemory::dtype() const {
  open();
  return letter_of(layout_.dtype.code) + std::to_string(layout_.dtype.bits / 8);
}

void DeviceMemory::use_on(std::uintptr_t stream) const { open().use_on(stream); }

nb::object DeviceMemory::capsule() const {
  const HeldBatch& batch = open();
  const nb::ndarray<> array(const_cast<void*>(layout_.begin), layout_.shape.size(),
                            layout_.shape.data(), batch.owner(batch_), nullptr, layout_.dtype,
                            nb::device::cuda::value, batch.source().ordinal());
  return nb::cast(array);
}

void add_device_memory(nb::module_& module) {
  nb::class_<DeviceMemory>(module, "DeviceMemory")
      .def_prop_ro("ordinal", &DeviceMemory::ordinal)
      .def_prop_ro("address", &DeviceMemory::address)
      .def_prop_ro("shape", &DeviceMemory::shape)
      .def_prop_ro("dtype", &DeviceMemory::dtype)
      .def("use_on", &DeviceMemory::use_on)
      .def("capsule", &DeviceMemory::capsule);
}

}  // namespace millrace::python
