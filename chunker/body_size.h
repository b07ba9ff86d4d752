// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_names.h"

namespace millrace {

// The most sizes of a list.
inline constexpr std::size_t most_sizes = 16;

// The sizes that bodies may have, ascending: a list, or an arithmetic sequence (`from`, `to`,
// `step`), which may be long. In frames.
class SizeList {
 public:
  SizeList() = default;
  explicit SizeList(std::vector<std::uint32_t> sizes) : sizes_(std::move(sizes)) {}
  // Requires: step >= 1, and to = from + n * step.
  SizeList(std::uint32_t from, std::uint32_t to, std::uint32_t step)
      : from_(from), step_(step), count_((to - from) / step + 1) {}

  bool empty() const { return size() == 0; }
  std::size_t size() const { return is_range() ? count_ : sizes_.size(); }
  std::uint32_t operator[](std::size_t i) const {
    return is_range() ? from_ + static_cast<std::uint32_t>(i) * step_ : sizes_[i];
  }
  std::uint32_t smallest() const { return (*this)[0]; }
  std::uint32_t largest() const { return (*this)[size() - 1]; }
  bool contains(std::uint64_t size) const;

  bool is_range() const { return count_ > 0; }
  std::uint32_t step() const { return step_; }  // the step of a range

  bool operator==(const SizeList&) const = default;

 private:
  std::vector<std::uint32_t> sizes_;
  std::uint32_t from_ = 0, step_ = 0;
  std::size_t count_ = 0;  // the number of sizes of a range
};

// How a stream chooses the sizes of its bodies.
struct SizeRule {
  enum class By : std::uint8_t {
    fixed,     // always Spec::size
    adaptive,  // by the time for which the stream's rows wait
    random,    // drawn
  };
  enum class Per : std::uint8_t { chunk, stream };  // how often a size is drawn

  By by = By::fixed;
  SizeList sizes{};  // empty: only Spec::size, and `by` is fixed
  std::uint64_t seed = 0;
  Per per = Per::chunk;

  bool operator==(const SizeRule&) const = default;
};

// Number `index` of the sequence of random numbers of a stream, uniform in 64 bits, with the key of
// the stream.
std::uint64_t draw_key(std::uint64_t seed, std::string_view stream);
std::uint64_t drawn_number(std::uint64_t key, std::uint64_t index);

// The sizes that the rule `random` draws for the rows of one stream. docs/rules.md has the same as
// a Python program.
class SizeDraws {
 public:
  // `rule` must outlive it.
  SizeDraws(const SizeRule& rule, std::string_view stream);

  // The size for the row with frames number `row`, counted from 0. `per = stream` always draws with
  // row 0.
  std::uint32_t operator[](std::uint64_t row) const;

 private:
  const SizeRule* rule_;
  std::uint64_t key_;
};

// The size of one row.
std::uint32_t drawn_size(const SizeRule& rule, std::string_view stream, std::uint64_t row);

}  // namespace millrace
