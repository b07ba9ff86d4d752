// SPDX-License-Identifier: Apache-2.0
#include "commands/chunking/frame_window.h"

#include <array>
#include <cassert>
#include <charconv>
#include <cstring>
#include <ostream>
#include <string_view>

#include "base/half.h"

namespace millrace {
namespace {

template <class Number>
void print_number(std::ostream& out, Number number) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out << std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

template <class Bits>
Bits value_at(const std::byte* bytes, std::uint32_t index) {
  Bits bits;
  std::memcpy(&bits, bytes + index * sizeof bits, sizeof bits);
  return bits;
}

}  // namespace

void FrameWindow::drop_before(std::uint64_t position) {
  const std::size_t dropped = (position - begin_) * type_.bytes();
  // Erases only if at least as many bytes are erased as moved: constant time per frame.
  if (2 * dropped < bytes_.size()) return;
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(dropped));
  begin_ = position;
}

// `print_value` prints the value with a given index in the frame.
template <class PrintValue>
void FrameWindow::print_frame(std::ostream& out, PrintValue print_value) const {
  if (type_.values > 1) out << '[';
  for (std::uint32_t i = 0; i < type_.values; ++i) {
    if (i > 0) out << ',';
    print_value(i);
  }
  if (type_.values > 1) out << ']';
}

void FrameWindow::print(std::ostream& out, std::uint64_t position) const {
  const std::size_t at = (position - begin_) * type_.bytes();
  assert(position >= begin_ && at + type_.bytes() <= bytes_.size());
  const std::byte* frame = bytes_.data() + at;
  print_frame(out, [&](std::uint32_t i) {
    switch (type_.element) {
      case Element::s16: return print_number(out, value_at<std::int16_t>(frame, i));
      case Element::f16: return print_number(out, half_to_float(value_at<std::uint16_t>(frame, i)));
      case Element::f32: return print_number(out, value_at<float>(frame, i));
    }
  });
}

void FrameWindow::print_zero(std::ostream& out) const {
  print_frame(out, [&](std::uint32_t) { out << '0'; });
}

}  // namespace millrace
