// SPDX-License-Identifier: Apache-2.0
#include "python/extension/plain_values.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/half.h"
#include "python/extension/parts.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

using Shorten = double (*)(double);

double read(const char* begin, const char* end) {
  double value = 0;
  std::from_chars(begin, end, value);
  return value;
}

// Requires: `value` is finite, here and below.
// In the scientific format: otherwise a large number gets all digits before its point.
double shortest_float(double value) {
  char text[32];
  const auto number = static_cast<float>(value);
  return read(text,
              std::to_chars(text, text + sizeof text, number, std::chars_format::scientific).ptr);
}

// The upper half of the bits of the nearest float, rounded to even.
std::uint16_t float_to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

// `narrow` makes the 16 bits of a float.
template <auto narrow>
double shortest_of_16_bits(double value) {
  const auto bits = narrow(static_cast<float>(value));
  for (int digits = 1; digits <= 5; ++digits) {
    char text[32];
    const double shorter = read(
        text,
        std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr);
    if (narrow(static_cast<float>(shorter)) == bits) return shorter;
  }
  return shortest_float(value);
}

// Null: the values stay as they are. NumPy takes long for the text of a dtype, so its character is
// read; PyTorch's dtypes have only a text.
Shorten shorten_of(nb::handle array) {
  const nb::object dtype = nb::getattr(array, "dtype", nb::none());
  const nb::object named = nb::getattr(dtype, "char", dtype);
  const nb::str text(nb::handle{named});
  const std::string_view name = text.c_str();
  if (name == "f" || name == "torch.float32") return shortest_float;
  if (name == "e" || name == "torch.float16") return shortest_of_16_bits<float_to_half>;
  return name == "torch.bfloat16" ? shortest_of_16_bits<float_to_bfloat> : nullptr;
}

// Copies lists, which might belong to the array.
nb::object shortened(nb::handle value, Shorten shorten) {
  PyObject* const object = value.ptr();
  if (PyFloat_Check(object)) {
    const double number = PyFloat_AsDouble(object);
    return std::isfinite(number) ? nb::float_(shorten(number)) : nb::borrow(value);
  }
  if (!PyList_Check(object)) return nb::borrow(value);
  nb::list copy;
  for (const nb::handle one : nb::borrow<nb::list>(value)) copy.append(shortened(one, shorten));
  return copy;
}

}  // namespace

nb::object plain_values(nb::handle array) {
  nb::object values = array.attr("tolist")();
  const Shorten shorten = shorten_of(array);
  return shorten == nullptr ? values : shortened(values, shorten);
}

void add_plain_values(nb::module_& module) {
  module.def("plain_values", &plain_values, nb::arg("array"));
}

}  // namespace millrace::python
