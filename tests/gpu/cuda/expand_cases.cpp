// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <random>

#include "gpu/host/convert.h"
#include "gpu/host/row_writer.h"
#include "tests/gpu/cuda/kernel_cases.h"
#include "tests/gpu/host/row_reference.h"

namespace millrace::test {

namespace {

// A slab of bare rows: frames in the windows, random values elsewhere.
struct Slab {
  RowFormat format;  // format of the tensor
  std::uint32_t width = 0;
  std::vector<std::int32_t> left, size, right;
  std::vector<std::byte> frames;

  std::uint32_t rows() const { return static_cast<std::uint32_t>(size.size()); }
  std::size_t values() const { return std::size_t{width} * format.values; }  // values of a row
  std::uint32_t window(std::size_t row) const {
    return static_cast<std::uint32_t>(left[row] + size[row] + right[row]);
  }
  Bytes window_of(std::size_t row) const {
    const std::size_t frame = format.values * size_of(format.frames);
    const auto lead = format.lead(static_cast<std::uint32_t>(left[row]));
    return Bytes(frames).subspan((row * width + lead) * frame, window(row) * frame);
  }
};

std::uint32_t pick(std::mt19937& random, std::uint32_t n) {
  return static_cast<std::uint32_t>(random() % n);
}

// Adds a row to a slab: a padding row, a full row, or a row with a random window.
void add_row(Slab& slab, std::mt19937& random) {
  const std::uint32_t context = slab.format.context == 0 ? slab.width - 1 : slab.format.context;
  const std::uint32_t kind = pick(random, 4);
  const std::uint32_t left = kind == 1 ? slab.format.context : pick(random, context + 1);
  const std::uint32_t room = slab.width - std::max(slab.format.context, left);
  const std::uint32_t size = kind == 1 ? room : 1 + pick(random, room);
  const std::uint32_t right = kind == 1 ? 0 : pick(random, room - size + 1);
  slab.left.push_back(static_cast<std::int32_t>(kind == 0 ? 0 : left));
  slab.size.push_back(static_cast<std::int32_t>(kind == 0 ? 0 : size));
  slab.right.push_back(static_cast<std::int32_t>(kind == 0 ? 0 : right));
}

Slab any_slab(std::mt19937& random, const RowFormat& format, std::uint32_t rows,
              std::uint32_t width) {
  Slab slab{.format = format, .width = width, .left = {}, .size = {}, .right = {}, .frames = {}};
  while (slab.rows() < rows) add_row(slab, random);
  slab.frames = random_values(random, format.frames, rows * slab.values());
  return slab;
}

std::vector<std::byte> expanded(KernelMachine& machine, const Slab& slab) {
  const Placed frames(machine, slab.frames);
  const Placed left(machine, slab.left), size(machine, slab.size), right(machine, slab.right);
  const auto tensor = machine.memory(slab.rows() * slab.values() * size_of(slab.format.dtype), 0);
  machine.expand({frames.at(), left.at(), size.at(), right.at(), slab.rows(), slab.width},
                 slab.format, tensor->at());
  CHECK(tensor->kept());
  return tensor->read();
}

std::vector<std::byte> by_row_writer(const Slab& slab) {
  const std::size_t row_bytes = slab.values() * size_of(slab.format.dtype);
  std::vector<std::byte> tensor(slab.rows() * row_bytes);
  const RowWriter writer(slab.format);
  for (std::size_t row = 0; row < slab.rows(); ++row)
    if (slab.size[row] > 0)
      writer.write(MutableBytes(tensor).subspan(row * row_bytes, row_bytes), {slab.window_of(row)},
                   static_cast<std::uint32_t>(slab.left[row]));
  return tensor;
}

std::vector<std::byte> by_definition(const Slab& slab) {
  std::vector<std::byte> tensor;
  for (std::size_t row = 0; row < slab.rows(); ++row) {
    std::vector<std::byte> made(slab.values() * size_of(slab.format.dtype));
    if (slab.size[row] > 0)
      made = row_by_definition(slab.format, slab.width, slab.window_of(row),
                               static_cast<std::uint32_t>(slab.left[row]));
    tensor.insert(tensor.end(), made.begin(), made.end());
  }
  return tensor;
}

// All values of a 16-bit type, or as many random bit patterns of f32.
std::vector<std::byte> every_value(std::mt19937& random, Element element) {
  std::vector<std::byte> values(0x10000 * size_of(element));
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = element == Element::f32 ? static_cast<std::uint32_t>(random()) : i;
    std::memcpy(&values[i * size_of(element)], &bits, size_of(element));
  }
  return values;
}

}  // namespace

void check_values(KernelMachine& machine) {
  std::mt19937 random(1);
  for (const auto& [frames, dtype] : conversions) {
    const Slab slab{.format = {.frames = frames, .dtype = dtype},
                    .width = 0x10000,
                    .left = {0},
                    .size = {0x10000},
                    .right = {0},
                    .frames = every_value(random, frames)};
    std::vector<std::byte> expected(0x10000 * size_of(dtype));
    conversion(frames, dtype)(slab.frames.data(), expected.data(), 0x10000);
    CAPTURE(name_of(frames), name_of(dtype));
    CHECK((expanded(machine, slab) == expected));
  }
}

void check_windows(KernelMachine& machine) {
  std::mt19937 random(2);
  for (std::uint32_t round = 0; round < 700; ++round) {
    const auto [frames, dtype] = conversions[round % 7];
    const RowFormat format{.frames = frames,
                           .dtype = dtype,
                           .values = 1 + pick(random, round % 2 == 0 ? 3 : 20),
                           .context = pick(random, 3) == 0 ? 0 : pick(random, 9),
                           .repeat = pick(random, 2) == 0};
    const std::uint32_t width = format.context + 1 + pick(random, 60);
    const Slab slab = any_slab(random, format, 1 + pick(random, 12), width);
    const auto tensor = expanded(machine, slab);
    if (tensor != by_row_writer(slab)) FAIL("not what RowWriter writes, round " << round);
    if (tensor != by_definition(slab)) FAIL("not what the definition says, round " << round);
  }
}

void check_batches(KernelMachine& machine) {
  std::mt19937 random(3);
  for (const auto& [frames, dtype] : conversions)
    for (const auto& [rows, width, values] :
         {std::array{64u, 1600u, 1u}, {17u, 999u, 2u}, {33u, 45u, 80u}, {3u, 30'001u, 1u}}) {
      const RowFormat format{
          .frames = frames, .dtype = dtype, .values = values, .context = 5, .repeat = true};
      const Slab slab = any_slab(random, format, rows, width);
      CAPTURE(name_of(frames), name_of(dtype), rows, width, values);
      CHECK((expanded(machine, slab) == by_row_writer(slab)));
    }
}

}  // namespace millrace::test
