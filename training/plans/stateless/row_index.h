// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::training {

// Rows of several streams in a sequence: finds the stream of each row in constant time. Twelve
// bytes per stream. Immutable and thread-safe after finish().
class RowIndex {
 public:
  // A row of a stream.
  struct Position {
    std::uint64_t stream = 0;  // number in the order of add()
    std::uint64_t row = 0;
    std::uint64_t rows = 0;  // all of the stream
  };

  explicit RowIndex(std::uint64_t streams) { begins_.reserve(streams + 1); }

  // Adds the next stream, with this number of rows.
  void add(std::uint64_t rows) { begins_.push_back(begins_.back() + rows); }
  void finish();

  std::uint64_t rows() const { return begins_.back(); }
  std::uint64_t streams() const { return begins_.size() - 1; }
  // The rows before a stream; stream = streams() is allowed.
  std::uint64_t begin(std::uint64_t stream) const { return begins_[stream]; }
  // Requires: row < rows().
  Position find(std::uint64_t row) const;
  // The same for several rows: Position::row is a row of all streams before, and of its stream
  // after. Does not wait for the memory of one row after the other.
  void find(std::span<Position> rows) const;

 private:
  Position find(std::uint64_t row, std::uint32_t low, std::uint32_t high) const;

  std::vector<std::uint64_t> begins_{0};
  unsigned shift_ = 0;                  // 2^shift_ rows lie between two samples
  std::vector<std::uint32_t> samples_;  // the stream of each of these rows, and an end
};

}  // namespace millrace::training
