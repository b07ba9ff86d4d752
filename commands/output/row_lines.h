// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>

#include "chunker/row_layout.h"

namespace millrace {

// Prints the values of a stream's frames as JSON: a number per frame, or an array if a frame has
// several values. Confined to one thread.
class FrameValues {
 public:
  virtual ~FrameValues() = default;
  virtual void print(std::ostream& out, std::uint64_t position) const = 0;
  // Prints a frame of zeros.
  virtual void print_zero(std::ostream& out) const = 0;
};

// The values of a stream without content: frame p has the value p + 1. Immutable after
// construction.
class PositionValues : public FrameValues {
 public:
  void print(std::ostream& out, std::uint64_t position) const override;
  void print_zero(std::ostream& out) const override;
};

// Prints rows as lines of JSON: [seq,begin,left,size,right,flags,gap]. With values, the eighth
// element has those of the row's columns; it is null for a marker row. Confined to one thread.
class RowLines {
 public:
  // `out` must outlive it.
  explicit RowLines(std::ostream& out) : out_(out) {}

  // Adds the values from now on, in rows of `width` columns. `values` must outlive it, and must
  // have the frames of a row's window when the row is printed.
  void show(const FrameValues& values, const ChunkRule& rule, std::uint32_t width);

  void print(const Row& row);

 private:
  void print_columns(const Row& row);

  std::ostream& out_;
  const FrameValues* values_ = nullptr;
  ChunkRule rule_;
  std::uint32_t width_ = 0;
};

}  // namespace millrace
