// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <utility>
#include <vector>

#include "base/half.h"
#include "training/catalogs/arrays/companion_array.h"

namespace millrace::training {
namespace {

namespace json = boost::json;
using Shape = CompanionArray::Shape;

class JsonArray final : public CompanionArray {
 public:
  JsonArray(std::vector<std::byte> bytes, const Shape& shape)
      : bytes_(std::move(bytes)), shape_(shape) {}
  const Shape& shape() const override { return shape_; }
  Result<Bytes, ReadError> entries(EntryRange range) override {
    const std::uint64_t entry = size_of(shape_.element) * shape_.values;
    return Bytes(bytes_).subspan(range.begin * entry, range.count * entry);
  }
  std::size_t memory() const override { return bytes_.capacity(); }
  bool is_current() override { return true; }
  std::size_t descriptors() const override { return 0; }

 private:
  const std::vector<std::byte> bytes_;
  const Shape shape_;
};

// Adds the numbers of an array, and of the arrays in it. False: another value is in it.
bool flatten(const json::array& array, std::vector<json::value>& into) {
  for (const json::value& value : array) {
    const json::array* inner = value.if_array();
    if (inner != nullptr ? !flatten(*inner, into) : !value.is_number()) return false;
    if (inner == nullptr) into.push_back(value);
  }
  return true;
}

bool fits_s32(const json::value& value) {
  boost::system::error_code error;
  if (value.is_double()) return false;
  value.to_number<std::int32_t>(error);
  return !error;
}

template <class Number>
void append(std::vector<std::byte>& to, Number number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// False: the value does not fit.
template <class Number>
bool append_integer(std::vector<std::byte>& to, const json::value& value) {
  boost::system::error_code error;
  const auto number = value.to_number<Number>(error);
  if (error) return false;
  append(to, number);
  return true;
}

bool append(std::vector<std::byte>& to, const json::value& value, CompanionElement element) {
  switch (element) {
    case CompanionElement::u8: return append_integer<std::uint8_t>(to, value);
    case CompanionElement::s16: return append_integer<std::int16_t>(to, value);
    case CompanionElement::s32: return append_integer<std::int32_t>(to, value);
    case CompanionElement::s64: return append_integer<std::int64_t>(to, value);
    case CompanionElement::f16:
      append(to, float_to_half(static_cast<float>(value.to_number<double>())));
      return true;
    case CompanionElement::f32:
      append(to, static_cast<float>(value.to_number<double>()));
      return true;
  }
  return false;
}

ReadError fault(const std::string& label, const char* reason) {
  return {DataFault::format, label + ": " + reason};
}

}  // namespace

OpenedArray parse_json_array(std::string_view text, const std::string& label,
                             const std::optional<CompanionElement>& element) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  const json::array* array = error ? nullptr : value.if_array();
  if (array == nullptr) return fault(label, "must be a JSON array");
  std::vector<json::value> numbers;
  if (!flatten(*array, numbers)) return fault(label, "must have numbers only");
  Shape shape{.entries = array->size()};
  if (!array->empty()) shape.values = numbers.size() / array->size();
  if (shape.values == 0 || numbers.size() != shape.values * shape.entries)
    return fault(label, "must have entries of equal lengths");
  const bool integers = std::ranges::all_of(numbers, fits_s32);
  shape.element = element.value_or(integers ? CompanionElement::s32 : CompanionElement::f32);
  std::vector<std::byte> bytes;
  bytes.reserve(numbers.size() * size_of(shape.element));
  for (const json::value& number : numbers)
    if (!append(bytes, number, shape.element))
      return fault(label, "has a value that its type cannot represent");
  return std::make_unique<JsonArray>(std::move(bytes), shape);
}

}  // namespace millrace::training
