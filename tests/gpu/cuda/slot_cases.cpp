// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "tests/gpu/cuda/kernel_cases.h"
#include "tests/gpu/host/row_reference.h"

namespace millrace::test {

namespace {

std::uint32_t below(std::mt19937& random, std::uint32_t n) {
  return static_cast<std::uint32_t>(random() % n);
}

// A batch and the state of its slots. The last slot is the spare one.
struct Batch {
  std::size_t row_bytes = 0;
  std::size_t state_offset = 0, rows_offset = 0;  // from a multiple of 16
  std::vector<std::byte> state, rows;
  std::vector<std::int32_t> slot;
  std::vector<std::uint8_t> reset;

  std::uint32_t count() const { return static_cast<std::uint32_t>(slot.size()); }
  auto state_of(std::size_t row) const { return static_cast<std::size_t>(slot[row]) * row_bytes; }
};

// A batch of rows with distinct slots, followed by padding rows.
Batch any_batch(std::mt19937& random, std::size_t row_bytes, std::uint32_t slots,
                std::uint32_t rows, std::uint32_t padding) {
  Batch batch;
  batch.row_bytes = row_bytes;
  batch.state = random_values(random, Element::s16, (slots + 1) * row_bytes);
  batch.state.resize((slots + 1) * row_bytes);
  batch.slot.resize(slots);
  std::iota(batch.slot.begin(), batch.slot.end(), 0);
  std::shuffle(batch.slot.begin(), batch.slot.end(), random);
  batch.slot.resize(rows);
  batch.slot.resize(rows + padding, static_cast<std::int32_t>(slots));
  batch.rows = random_values(random, Element::s16, batch.slot.size() * row_bytes);
  batch.rows.resize(batch.slot.size() * row_bytes);
  for (std::uint32_t row = 0; row < batch.count(); ++row)
    batch.reset.push_back(row < rows ? static_cast<std::uint8_t>(below(random, 3)) : 0);
  return batch;
}

void check_reset(KernelMachine& machine, const Batch& batch) {
  const Placed state(machine, batch.state, batch.state_offset);
  const Placed slot(machine, batch.slot);
  const Placed reset(machine, batch.reset);
  machine.reset_rows({state.at(), batch.row_bytes}, slot.at(), reset.at(), batch.count());
  std::vector<std::byte> expected = batch.state;
  for (std::uint32_t row = 0; row < batch.count(); ++row)
    if (batch.reset[row] != 0)
      std::ranges::fill(MutableBytes(expected).subspan(batch.state_of(row), batch.row_bytes),
                        std::byte{0});
  CHECK((state.read() == expected));
  CHECK(state.kept());
}

void check_gather(KernelMachine& machine, const Batch& batch) {
  const Placed state(machine, batch.state, batch.state_offset);
  const Placed slot(machine, batch.slot);
  const auto to = machine.memory(batch.rows.size(), batch.rows_offset);
  machine.gather_rows({state.at(), batch.row_bytes}, slot.at(), batch.count(), to->at());
  std::vector<std::byte> expected;
  for (std::uint32_t row = 0; row < batch.count(); ++row) {
    const Bytes from = Bytes(batch.state).subspan(batch.state_of(row), batch.row_bytes);
    expected.insert(expected.end(), from.begin(), from.end());
  }
  CHECK((to->read() == expected));
  CHECK(to->kept());
  CHECK((state.read() == batch.state));
}

void check_scatter(KernelMachine& machine, const Batch& batch) {
  const Placed state(machine, batch.state, batch.state_offset);
  const Placed slot(machine, batch.slot);
  const Placed rows(machine, batch.rows, batch.rows_offset);
  machine.scatter_rows({state.at(), batch.row_bytes}, slot.at(), batch.count(), rows.at());
  std::vector<std::byte> expected = batch.state, found = state.read();
  for (std::size_t row = 0; row < batch.count(); ++row)
    std::copy_n(batch.rows.data() + row * batch.row_bytes, batch.row_bytes,
                expected.data() + batch.state_of(row));
  const std::size_t spare = batch.state.size() - batch.row_bytes;  // its content is undefined
  expected.resize(spare);
  found.resize(spare);
  CHECK((found == expected));
  CHECK(state.kept());
}

void check_all(KernelMachine& machine, const Batch& batch) {
  CAPTURE(machine.name(), batch.row_bytes, batch.count(), batch.state_offset, batch.rows_offset);
  check_reset(machine, batch);
  check_gather(machine, batch);
  check_scatter(machine, batch);
}

}  // namespace

void check_slots(KernelMachine& machine) {
  std::mt19937 random(4);
  for (const std::size_t row_bytes : {1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 32, 48, 100, 640, 4097})
    for (const std::size_t offset : {0, 1, 2, 4, 8}) {
      const std::uint32_t slots = 1 + below(random, 20);
      Batch batch =
          any_batch(random, row_bytes, slots, below(random, slots + 1), 1 + below(random, 3));
      (below(random, 2) == 0 ? batch.state_offset : batch.rows_offset) = offset;
      check_all(machine, batch);
    }
}

void check_arenas(KernelMachine& machine) {
  std::mt19937 random(5);
  check_all(machine, any_batch(random, 16, 5000, 4000, 100));
  check_all(machine, any_batch(random, 1 << 20, 3, 2, 1));
  check_all(machine, any_batch(random, (1 << 18) + 2, 3, 3, 0));
}

void check_nothing(KernelMachine& machine) {
  std::mt19937 random(6);
  check_all(machine, any_batch(random, 16, 3, 0, 0));
  check_all(machine, any_batch(random, 0, 3, 2, 1));
  const auto tensor = machine.memory(16, 0);
  machine.expand({}, {.dtype = Element::f32}, tensor->at());
  CHECK((tensor->read() == std::vector<std::byte>(16, poison)));
}

}  // namespace millrace::test
