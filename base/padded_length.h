// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>

namespace millrace {

// The length to which an axis of a tensor is padded if it needs `least` rows or columns: the
// smallest of `buckets`, which ascend, that is at least that. Without buckets it is `least`.
// Requires: the last bucket is at least `least`.
inline std::uint32_t padded_length(std::span<const std::uint32_t> buckets, std::uint32_t least) {
  if (buckets.empty()) return least;
  assert(least <= buckets.back());
  return *std::ranges::lower_bound(buckets, least);
}

}  // namespace millrace
