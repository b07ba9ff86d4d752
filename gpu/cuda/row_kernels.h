// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/cuda/fast_division.h"
#include "gpu/cuda/kernel_launch.h"
#include "gpu/cuda/kernels.h"

// The kernels of reset_rows(), gather_rows() and scatter_rows(). They treat all rows as one
// sequence of units, so that a few large rows occupy a device as well as many small ones. A unit
// has the largest size, up to 16 bytes, to whose multiples all rows are aligned.
namespace millrace::cuda {

// The address of each unit of the rows in the state of the slots. Immutable after construction.
template <class Unit, class Division>
class SlotRows {
 public:
  using Index = typename Division::Index;

  SlotRows(const Arena& arena, const std::int32_t* slot, std::uint32_t rows)
      : arena_(arena),
        slot_(slot),
        row_of_(arena.row_bytes / sizeof(Unit)),
        units_(static_cast<Index>(row_of_.divisor() * Index{rows})) {}

  constexpr Index units() const { return units_; }
  constexpr Index row_of(Index unit) const { return row_of_(unit); }
  constexpr std::byte* at(Index unit) const {
    const Index row = row_of_(unit);
    const std::size_t within = unit - row * row_of_.divisor();
    return arena_.state + static_cast<std::size_t>(slot_[row]) * arena_.row_bytes +
           within * sizeof(Unit);
  }

 private:
  Arena arena_;
  const std::int32_t* slot_;
  Division row_of_;  // the row of a unit; divisor: the units of a row
  Index units_;
};

enum class Direction { gather, scatter };

// The task (kernel_launch.h) of gather_rows() and scatter_rows(). Immutable after construction.
template <Direction direction, class Unit, class Division>
class MoveTask {
 public:
  using Index = typename Division::Index;

  // Units per thread: the loads that are in flight at once.
  static constexpr std::uint32_t units = 4;

  // `other` is the other array: the target of gather, the source of scatter.
  MoveTask(const SlotRows<Unit, Division>& rows, std::byte* other) : rows_(rows), other_(other) {}

  std::uint64_t blocks() const { return blocks_for(rows_.units(), units); }

  // Three loops, so that a thread waits once for all of its slots and once for all of its units.
  constexpr void operator()(Thread at) const {
    const Index first = first_item<Index>(at, units);
    std::byte* state[units];
    Unit value[units];
    for (std::uint32_t i = 0; i < units; ++i)
      if (in_range(first, i)) state[i] = rows_.at(unit_of(first, i));
    for (std::uint32_t i = 0; i < units; ++i)
      if (in_range(first, i)) value[i] = load<Unit>(from(state[i], unit_of(first, i)));
    for (std::uint32_t i = 0; i < units; ++i)
      if (in_range(first, i)) store(to(state[i], unit_of(first, i)), value[i]);
  }

 private:
  static constexpr Index unit_of(Index first, std::uint32_t i) {
    return first + i * threads_per_block;
  }
  constexpr bool in_range(Index first, std::uint32_t i) const {
    return unit_of(first, i) < rows_.units();
  }
  constexpr std::byte* other(Index unit) const { return other_ + sizeof(Unit) * std::size_t{unit}; }
  constexpr const std::byte* from(std::byte* state, Index unit) const {
    return direction == Direction::gather ? state : other(unit);
  }
  constexpr std::byte* to(std::byte* state, Index unit) const {
    return direction == Direction::gather ? other(unit) : state;
  }

  SlotRows<Unit, Division> rows_;
  std::byte* other_;
};

// The task (kernel_launch.h) of reset_rows(). Immutable after construction.
template <class Unit, class Division>
class ResetTask {
 public:
  using Index = typename Division::Index;

  // Units per thread. Most rows are not reset, and starting a thread costs more than a unit.
  static constexpr std::uint32_t units = 8;

  ResetTask(const SlotRows<Unit, Division>& rows, const std::uint8_t* reset)
      : rows_(rows), reset_(reset) {}

  std::uint64_t blocks() const { return blocks_for(rows_.units(), units); }

  constexpr void operator()(Thread at) const {
    const Index first = first_item<Index>(at, units);
    for (std::uint32_t i = 0; i < units; ++i) {
      const Index unit = first + i * threads_per_block;
      if (unit < rows_.units() && reset_[rows_.row_of(unit)] != 0) store(rows_.at(unit), Unit{});
    }
  }

 private:
  SlotRows<Unit, Division> rows_;
  const std::uint8_t* reset_;
};

// with_slot_rows() calls run(rows) with SlotRows of the largest unit that divides row_bytes and all
// addresses; `addresses` is the bitwise or of these. They do not call it if there are no units.
template <class Unit, class Run>
void with_units(const Arena& arena, const std::int32_t* slot, std::uint32_t rows, Run&& run) {
  const std::uint64_t units = arena.row_bytes / sizeof(Unit) * rows;
  if (units == 0) return;
  if (units < FastDivision::bound)
    run(SlotRows<Unit, FastDivision>(arena, slot, rows));
  else
    run(SlotRows<Unit, WideDivision>(arena, slot, rows));
}
template <class Run>
void with_slot_rows(const Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                    std::uintptr_t addresses, Run&& run) {
  const std::uintptr_t bits = addresses | arena.row_bytes;
  if (bits % 16 == 0) return with_units<Pack<std::uint32_t, 4>>(arena, slot, rows, run);
  if (bits % 8 == 0) return with_units<Pack<std::uint32_t, 2>>(arena, slot, rows, run);
  if (bits % 4 == 0) return with_units<Pack<std::uint32_t, 1>>(arena, slot, rows, run);
  if (bits % 2 == 0) return with_units<Pack<std::uint16_t, 1>>(arena, slot, rows, run);
  with_units<Pack<std::uint8_t, 1>>(arena, slot, rows, run);
}

inline std::uintptr_t bits_of(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

// Each calls run(task) with its task; does not call it if there is nothing to do.
template <class Run>
void with_reset(const Arena& arena, const std::int32_t* slot, const std::uint8_t* reset,
                std::uint32_t rows, Run&& run) {
  with_slot_rows(arena, slot, rows, bits_of(arena.state),
                 [&]<class Unit, class Division>(const SlotRows<Unit, Division>& of) {
                   run(ResetTask<Unit, Division>(of, reset));
                 });
}
template <Direction direction, class Run>
void with_move(const Arena& arena, const std::int32_t* slot, std::uint32_t rows, std::byte* other,
               Run&& run) {
  with_slot_rows(arena, slot, rows, bits_of(arena.state) | bits_of(other),
                 [&]<class Unit, class Division>(const SlotRows<Unit, Division>& of) {
                   run(MoveTask<direction, Unit, Division>(of, other));
                 });
}
template <class Run>
void with_gather(const Arena& arena, const std::int32_t* slot, std::uint32_t rows, std::byte* to,
                 Run&& run) {
  with_move<Direction::gather>(arena, slot, rows, to, run);
}
template <class Run>
void with_scatter(const Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                  const std::byte* from, Run&& run) {
  // Only reads `from`; a task has the same type for both directions.
  with_move<Direction::scatter>(arena, slot, rows, const_cast<std::byte*>(from), run);
}

}  // namespace millrace::cuda
