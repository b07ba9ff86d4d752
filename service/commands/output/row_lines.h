// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>

#include "chunker/row_layout.h"

namespace millrace {

// The values of a stream's frames as JSON: one number per frame, or an array where it has more.
class FrameValues {
 public:
  virtual ~FrameValues() = default;
  virtual void print(std::ostream& out, std::uint64_t position) const = 0;
  // A frame of zeros.
  virtual void print_zero(std::ostream& out) const = 0;
};

// Frame p has the value p + 1.
class PositionValues : public FrameValues {
 public:
  void print(std::ostream& out, std::uint64_t position) const override;
  void print_zero(std::ostream& out) const override;
};

// Rows as lines of JSON: [seq,begin,left,size,right,flags,gap], and where values are shown, those
// in the row's columns as an eighth element, null for a marker row. Confined to one thread.
class RowLines {
 public:
  // `out` outlives it.
  explicit RowLines(std::ostream& out) : out_(out) {}

  // From now on shows values, in rows of `width` columns. `values` outlives it, and has the frames
  // of a row's window when the row is printed.
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
