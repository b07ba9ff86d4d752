// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "gpu/host/batch_writer.h"
#include "tests/support/bytes.h"

namespace millrace::test {

// A batch of random rows that can be written into slabs of any format.
class RandomBatch {
 public:
  struct Row {
    RowControl control;
    std::vector<std::byte> frames;
  };

  RandomBatch(const RowFormat& format, std::uint32_t rows, std::uint32_t width, unsigned seed)
      : width_(width), rows_(rows) {
    std::mt19937 random(seed);
    const auto up_to = [&](std::uint32_t most) {
      return static_cast<std::uint32_t>(random() % (most + 1));
    };
    const std::uint32_t framed = rows == 0 ? 0 : 1 + up_to(rows - 1);
    for (std::uint32_t i = 0; i < framed; ++i) {
      Row row;
      row.control.slot = i;
      row.control.left = up_to(format.context);
      row.control.size = 1 + up_to(width - format.context - 1);
      row.control.right = up_to(width - format.context - row.control.size);
      row.control.reset = up_to(1) == 1;
      row.control.flags = row.control.reset ? 3 : 1;
      const std::size_t values =
          std::size_t{format.values} * (row.control.left + row.control.size + row.control.right);
      for (std::size_t v = 0; v < values; ++v) append(format.frames, random, row.frames);
      framed_.push_back(std::move(row));
    }
    for (std::uint32_t i = up_to(3) + (rows == 0 ? 1 : 0); i > 0; --i)
      marks_.push_back({.slot = up_to(9), .flags = 32});
  }

  SlabShape write(const RowFormat& format, MutableBytes slab) const {
    BatchWriter writer(format, spare);
    writer.begin(slab, rows_, static_cast<std::uint32_t>(marks_.size()), width_);
    for (const Row& row : framed_) writer.add(row.control, {Bytes(row.frames)});
    for (const RowControl& mark : marks_) writer.add_mark(mark);
    return writer.finish();
  }

  static constexpr std::uint32_t spare = 64;  // slot of padding rows

 private:
  static void append(Element element, std::mt19937& random, std::vector<std::byte>& to) {
    const auto sample = static_cast<std::int16_t>(random());
    const float single = static_cast<float>(sample) / 8192;
    const auto half = static_cast<std::uint16_t>(random() & 0xbbff);  // finite
    const auto bytes = element == Element::s16   ? bytes_of<std::int16_t>({sample})
                       : element == Element::f16 ? bytes_of<std::uint16_t>({half})
                                                 : bytes_of<float>({single});
    to.insert(to.end(), bytes.begin(), bytes.end());
  }

  std::uint32_t width_, rows_;
  std::vector<Row> framed_;
  std::vector<RowControl> marks_;
};

}  // namespace millrace::test
