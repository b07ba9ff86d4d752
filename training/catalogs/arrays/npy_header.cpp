// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/arrays/npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace millrace::training {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct Type {
  std::string_view descr;
  CompanionElement element;
};
constexpr std::array<Type, 7> types{{{"<i2", CompanionElement::s16},
                                     {"<i4", CompanionElement::s32},
                                     {"<i8", CompanionElement::s64},
                                     {"|u1", CompanionElement::u8},
                                     {"|b1", CompanionElement::u8},
                                     {"<f2", CompanionElement::f16},
                                     {"<f4", CompanionElement::f32}}};

// Reads the Python literal of a header:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  // Skips spaces, and takes the character if it is next.
  bool take(char c) {
    skip_spaces();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    skip_spaces();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> string() {
    if (!take('\'')) return std::nullopt;
    const std::size_t end = text_.find('\'');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view found = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return found;
  }
  std::optional<std::uint64_t> number() {
    skip_spaces();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return value;
  }
  // (3,), (3, 4) or ().
  std::optional<std::vector<std::uint64_t>> tuple() {
    std::vector<std::uint64_t> values;
    if (!take('(')) return std::nullopt;
    while (!take(')')) {
      const auto value = number();
      if (!value || values.size() > 32) return std::nullopt;
      values.push_back(*value);
      if (!take(',') && !text_.starts_with(')')) return std::nullopt;
    }
    return values;
  }

 private:
  void skip_spaces() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size()));
  }

  std::string_view text_;
};

struct Fields {
  std::optional<std::string_view> descr{};
  std::optional<bool> fortran{};
  std::optional<std::vector<std::uint64_t>> shape{};
};

// False: it is no such literal.
bool read_fields(Literal literal, Fields& into) {
  if (!literal.take('{')) return false;
  while (!literal.take('}')) {
    const auto key = literal.string();
    if (!key || !literal.take(':')) return false;
    if (*key == "descr") {
      into.descr = literal.string();
      if (!into.descr) return false;
    } else if (*key == "fortran_order") {
      const bool yes = literal.take("True");
      if (!yes && !literal.take("False")) return false;
      into.fortran = yes;
    } else if (*key == "shape") {
      into.shape = literal.tuple();
      if (!into.shape) return false;
    } else {
      return false;
    }
    literal.take(',');
  }
  return into.descr && into.fortran && into.shape;
}

}  // namespace

Result<NpyHeader, std::string> parse_npy_header(Bytes beginning) {
  const std::string_view text(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  constexpr std::size_t fixed = magic.size() + 2;
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(text[at]); };
  if (text.size() < fixed + 4 || !text.starts_with(magic) || byte(6) < 1 || byte(6) > 3)
    return std::string("is not a .npy file of version 1, 2 or 3");
  const std::size_t digits = byte(6) == 1 ? 2 : 4;
  std::size_t size = 0;
  for (std::size_t i = 0; i < digits; ++i) size |= std::size_t{byte(fixed + i)} << (8 * i);
  if (size > text.size() - fixed - digits) return std::string("ends within its header");
  Fields fields;
  if (!read_fields(Literal(text.substr(fixed + digits, size)), fields))
    return std::string("has a damaged header");
  NpyHeader header{.shape = *fields.shape, .begin = fixed + digits + size};
  if (*fields.fortran && header.shape.size() > 1)
    return std::string("is in Fortran order: save it with numpy.ascontiguousarray");
  for (const Type& type : types) {
    if (type.descr != *fields.descr) continue;
    header.element = type.element;
    return header;
  }
  return "has values of the type " + std::string(*fields.descr) +
         "; supported: int16, int32, int64, uint8, bool, float16, float32";
}

}  // namespace millrace::training
