// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "input/containers/sample_bytes.h"

namespace millrace {

// Decides whether the bytes behind the declared samples are samples too: then the header was
// written before the end was known. Otherwise they are a chunk, a tag, text, zeros up to the end,
// or too few. Behind a header without a length, all but chunks and tags are samples, and zeros are
// silence. The bytes of a file and of a pipe go through it. Confined to one thread.
class BytesBehind {
 public:
  explicit BytesBehind(const SampleBytes& header) : header_(header) {}

  // Where the next bytes are to be written. Requires: !decided().
  std::span<std::uint8_t> room() { return std::span(bytes_).subspan(count_); }
  // `count` bytes have been written there; 0: no more follow.
  void add(std::size_t count);

  bool decided() const { return decided_; }
  // False until it is decided.
  bool are_samples() const { return are_samples_; }
  // The bytes that were added: zeros, then the others.
  std::uint64_t zeros() const { return zeros_; }
  std::span<const std::uint8_t> others() const { return std::span(bytes_).first(count_); }

 private:
  void drop_zeros();
  bool judge() const;

  const SampleBytes header_;
  std::array<std::uint8_t, 4096> bytes_{};
  std::size_t count_ = 0;
  std::uint64_t zeros_ = 0;
  bool decided_ = false;
  bool are_samples_ = false;
};

}  // namespace millrace
