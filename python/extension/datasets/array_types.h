// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <exception>

#include "base/bytes.h"
#include "base/companion.h"
#include "base/frame_type.h"

namespace millrace::python {

inline nanobind::dlpack::dtype dtype_of(Element element) {
  using Code = nanobind::dlpack::dtype_code;
  const auto code = element == Element::s16 ? Code::Int : Code::Float;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * size_of(element)), 1};
}

inline nanobind::dlpack::dtype dtype_of(CompanionElement element) {
  switch (element) {
    case CompanionElement::s16: return nanobind::dtype<std::int16_t>();
    case CompanionElement::s32: return nanobind::dtype<std::int32_t>();
    case CompanionElement::s64: return nanobind::dtype<std::int64_t>();
    case CompanionElement::u8: return nanobind::dtype<std::uint8_t>();
    case CompanionElement::f16: return dtype_of(Element::f16);
    case CompanionElement::f32: return dtype_of(Element::f32);
  }
  std::terminate();
}

// The bytes of an object with a contiguous buffer, as long as this object exists. Throws
// nanobind::python_error for anything else.
//
// Requires: the GIL.
class ArrayBytes {
 public:
  explicit ArrayBytes(nanobind::handle array) {
    if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nanobind::python_error();
  }
  ~ArrayBytes() { PyBuffer_Release(&view_); }
  ArrayBytes(const ArrayBytes&) = delete;
  ArrayBytes& operator=(const ArrayBytes&) = delete;

  Bytes get() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_;
};

}  // namespace millrace::python
