// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "gpu/cuda/fast_division.h"
#include "gpu/cuda/kernel_launch.h"
#include "gpu/cuda/kernels.h"
#include "gpu/host/convert_value.h"
#include "gpu/host/row_format.h"

// The kernel of expand(). Slab and tensor have the same elements in the same order. So the kernel
// treats both as flat arrays: a thread converts packs of consecutive elements, whatever row they
// are in.
namespace millrace::cuda {

// The conversion of one value.
template <class Value>
struct Same {
  using From = Value;
  using To = Value;
  static constexpr To of(From value) { return value; }
};
struct S16ToF32 {
  using From = std::int16_t;
  using To = float;
  static constexpr To of(From value) { return float_of_s16(value); }
};
struct S16ToF16 {
  using From = std::int16_t;
  using To = Half;
  static constexpr To of(From value) { return half_of_s16(value); }
};
struct F32ToF16 {
  using From = float;
  using To = Half;
  static constexpr To of(From value) { return half_of_float(value); }
};
struct F16ToF32 {
  using From = Half;
  using To = float;
  static constexpr To of(From value) { return half_to_float(value); }
};

// The task (kernel_launch.h) that expands rows. Immutable after construction.
template <class Cast, class Division>
class ExpandTask {
 public:
  using From = typename Cast::From;
  using To = typename Cast::To;
  using Index = typename Division::Index;

  // Elements of a pack: those that fill 16 bytes of the larger type. Neighbouring threads then
  // access neighbouring bytes in both arrays.
  static constexpr std::uint32_t pack_size =
      16 / (sizeof(From) < sizeof(To) ? sizeof(To) : sizeof(From));
  // Packs per thread: the loads that are in flight at once.
  static constexpr std::uint32_t packs = 4;

  ExpandTask(const SlabRows& rows, const RowFormat& format, std::byte* tensor)
      : rows_(rows),
        tensor_(tensor),
        row_of_(std::uint64_t{rows.width} * format.values),
        elements_(static_cast<Index>(row_of_.divisor() * Index{rows.rows})),
        format_(format) {}

  std::uint64_t blocks() const {
    return blocks_for((std::uint64_t{elements_} + pack_size - 1) / pack_size, packs);
  }

  constexpr void operator()(Thread at) const {
    const Index first = first_item<Index>(at, packs) * pack_size;
    FromPack pack[packs];
    // The loads do not wait for the windows: the addresses do not depend on them. Elements outside
    // of the windows are read, and not used.
    for (std::uint32_t i = 0; i < packs; ++i)
      if (is_whole(element_of(first, i))) pack[i] = load<FromPack>(from(element_of(first, i)));
    std::uint32_t borders = 0;  // a bit for each pack that is not inside one window
    for (std::uint32_t i = 0; i < packs; ++i)
      if (!is_inside_window(element_of(first, i))) borders |= 1u << i;
    for (std::uint32_t i = 0; i < packs; ++i)
      if ((borders >> i & 1) == 0) store(to(element_of(first, i)), converted(pack[i]));
    for (Index element = first; borders != 0 && element < elements_;
         element += threads_per_block * pack_size, borders >>= 1)
      if ((borders & 1) != 0) write_border(element);
  }

 private:
  using FromPack = Pack<From, pack_size>;
  using ToPack = Pack<To, pack_size>;

  // The window of a row, in elements from the row's first. If `end` is 0, the row is all zeros.
  struct Window {
    Index begin = 0, end = 0;
  };

  static constexpr Index element_of(Index first, std::uint32_t i) {
    return first + i * threads_per_block * pack_size;
  }
  constexpr bool is_whole(Index element) const { return element + pack_size <= elements_; }
  constexpr const std::byte* from(Index element) const {
    return rows_.frames + sizeof(From) * std::size_t{element};
  }
  constexpr std::byte* to(Index element) const {
    return tensor_ + sizeof(To) * std::size_t{element};
  }

  constexpr Window window_of(Index row) const {
    const auto left = static_cast<std::uint32_t>(rows_.left[row]);
    const auto size = static_cast<std::uint32_t>(rows_.size[row]);
    const auto right = static_cast<std::uint32_t>(rows_.right[row]);
    const Index begin = Index{format_.lead(left)} * format_.values;
    const Index end = begin + Index{left + size + right} * format_.values;
    return {begin, size == 0 ? 0 : end};
  }

  // True if the pack is inside one window.
  constexpr bool is_inside_window(Index element) const {
    if (!is_whole(element)) return false;
    const Index row = row_of_(element);
    const Index column = element - row * row_of_.divisor();
    const Window window = window_of(row);
    return window.begin <= column && column + pack_size <= window.end;
  }

  static constexpr ToPack converted(const FromPack& pack) {
    ToPack out;
    for (std::uint32_t i = 0; i < pack_size; ++i) out.at[i] = Cast::of(pack.at[i]);
    return out;
  }

  // Writes a pack that is not inside one window: part of it is outside, or in another row, or
  // behind the last element.
  constexpr void write_border(Index element) const {
    Index row = row_of_(element), column = element - row * row_of_.divisor();
    Window window = window_of(row);
    const Index remaining = elements_ - element;
    ToPack out{};
    for (std::uint32_t i = 0; i < pack_size && i < remaining; ++i) {
      out.at[i] = value_at(row, column, window);
      if (++column < row_of_.divisor()) continue;
      column = 0;
      if (++row < rows_.rows) window = window_of(row);
    }
    if (is_whole(element)) return store(to(element), out);
    for (std::uint32_t i = 0; i < pack_size && i < remaining; ++i)
      store(to(element + i), Pack<To, 1>{out.at[i]});
  }

  constexpr To value_at(Index row, Index column, Window window) const {
    if (column < window.begin || window.end <= column) {
      if (!format_.repeat || window.end == 0) return To{};
      const Index frame = column < window.begin ? window.begin : window.end - format_.values;
      column = frame + column % format_.values;
    }
    return Cast::of(load<Pack<From, 1>>(from(row * row_of_.divisor() + column)).at[0]);
  }

  SlabRows rows_;
  std::byte* tensor_;
  Division row_of_;  // the row of an element; divisor: the elements of a row
  Index elements_;
  RowFormat format_;
};

// Calls run(task) with the task that expands these rows; does not call it if there are no elements.
template <class Cast, class Run>
void with_expand_of(const SlabRows& rows, const RowFormat& format, std::byte* tensor, Run&& run) {
  const std::uint64_t elements = std::uint64_t{rows.rows} * rows.width * format.values;
  if (elements == 0) return;
  if (elements < FastDivision::bound)
    run(ExpandTask<Cast, FastDivision>(rows, format, tensor));
  else
    run(ExpandTask<Cast, WideDivision>(rows, format, tensor));
}

// The same, with the conversion of the format. Requires: there is one.
template <class Run>
void with_expand(const SlabRows& rows, const RowFormat& format, std::byte* tensor, Run&& run) {
  const Element from = format.frames, to = format.dtype;
  if (from == to && size_of(to) == 2) return with_expand_of<Same<Half>>(rows, format, tensor, run);
  if (from == to) return with_expand_of<Same<std::uint32_t>>(rows, format, tensor, run);
  assert(to != Element::s16);
  if (from == Element::f16) return with_expand_of<F16ToF32>(rows, format, tensor, run);
  if (from == Element::f32) return with_expand_of<F32ToF16>(rows, format, tensor, run);
  if (to == Element::f32) return with_expand_of<S16ToF32>(rows, format, tensor, run);
  with_expand_of<S16ToF16>(rows, format, tensor, run);
}

}  // namespace millrace::cuda
