// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "recording/format/checksums.h"

namespace millrace::recording {

// A checksum of all rows of a stream, in order. With it a reader proves that it cuts the same rows
// as the service did. Each row adds 46 bytes, little-endian: seq and begin (u64), left, size and
// right (u32), flags and reason (u8), gap (u64), mark (i64; -1 for a row without a mark). The
// checksum of no rows is 0. Confined to one thread.
class RowDigest {
 public:
  static constexpr std::size_t row_bytes = 46;

  // `row` is a Row of chunker/row.h: this folder does not depend on the chunker.
  template <class Row>
  void add(const Row& row) {
    add_bytes(bytes_of(row));
  }
  // Adds the bytes of several rows. One call for many rows is faster than one for each.
  void add_bytes(Bytes rows) {
    crc_ = crc32c(rows, crc_);
    rows_ += rows.size() / row_bytes;
  }

  // The bytes of a row.
  template <class Row>
  static std::array<std::byte, row_bytes> bytes_of(const Row& row) {
    std::array<std::byte, row_bytes> bytes;
    std::size_t at = 0;
    const auto put = [&](auto value) {
      std::memcpy(bytes.data() + at, &value, sizeof value);
      at += sizeof value;
    };
    put(row.seq);
    put(row.begin);
    put(row.left);
    put(row.size);
    put(row.right);
    put(row.flags);
    put(static_cast<std::uint8_t>(row.reason));
    put(row.gap);
    put(row.mark ? static_cast<std::int64_t>(*row.mark) : std::int64_t{-1});
    return bytes;
  }

  std::uint32_t value() const { return crc_; }
  std::uint64_t rows() const { return rows_; }

 private:
  std::uint32_t crc_ = 0;
  std::uint64_t rows_ = 0;
};

}  // namespace millrace::recording
