// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateless/bucket_limits.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "training/plans/stateless/batch_limits.h"

namespace millrace::training {
namespace {

// Places where a bucket may end: enough that more of them save less than 0.1 % of the frames.
constexpr std::size_t most_ends = 512;

// A bucket has the streams [its begin, its end) of the sorted lengths.
using Ends = std::vector<std::size_t>;

bool is_end(const std::vector<std::uint32_t>& lengths, std::size_t end) {
  return end == lengths.size() || lengths[end] != lengths[end - 1];
}

// 0, and ascending ends up to the number of streams. Streams of equal length are in one bucket.
Ends possible_ends(const std::vector<std::uint32_t>& lengths) {
  Ends ends{0};
  for (std::size_t i = 1; i <= most_ends; ++i) {
    std::size_t end = std::max(lengths.size() * i / most_ends, ends.back());
    while (end == 0 || !is_end(lengths, end)) ++end;
    if (end > ends.back()) ends.push_back(end);
  }
  return ends;
}

// The ends of `count` buckets with the fewest frames: dynamic programming over the number of
// buckets and the end of the last of them.
Ends best_ends(const std::vector<std::uint32_t>& lengths, const RowWidths& widths,
               std::size_t count) {
  const Ends ends = possible_ends(lengths);
  count = std::min(count, ends.size() - 1);
  std::vector<std::uint64_t> least(ends.size(), std::numeric_limits<std::uint64_t>::max() / 2);
  least.front() = 0;
  std::vector<std::vector<std::size_t>> before;  // by bucket: the end before each end
  for (std::size_t bucket = 0; bucket < count; ++bucket) {
    std::vector<std::uint64_t> next(ends.size(), std::numeric_limits<std::uint64_t>::max() / 2);
    before.emplace_back(ends.size(), 0);
    for (std::size_t j = bucket + 1; j < ends.size(); ++j)
      for (std::size_t i = bucket; i < j; ++i) {
        const std::uint64_t frames =
            least[i] + std::uint64_t{ends[j] - ends[i]} * widths.width(lengths[ends[j] - 1]);
        if (frames >= next[j]) continue;
        next[j] = frames;
        before.back()[j] = i;
      }
    least = std::move(next);
  }
  Ends best(count);
  for (std::size_t bucket = count, j = ends.size() - 1; bucket-- > 0; j = before[bucket][j])
    best[bucket] = ends[j];
  return best;
}

}  // namespace

std::vector<std::uint32_t> bucket_limits(std::vector<std::uint32_t> lengths,
                                         const PlanOptions& options, const RowWidths& widths) {
  std::ranges::sort(lengths);
  std::vector<std::uint32_t> limits;
  std::size_t begin = 0;
  const auto rows = [&](std::size_t end) {
    return BatchLimits::most_rows(options, widths.width(lengths[end - 1]));
  };
  const auto has_whole_batches = [&](std::size_t end) {
    return end > begin && end < lengths.size() && is_end(lengths, end) &&
           (end - begin) % rows(end) == 0;
  };
  for (const std::size_t best : best_ends(lengths, widths, options.bucket_count)) {
    if (best == lengths.size()) break;
    std::size_t end = best;
    // If many lengths are equal, there may be no such end.
    for (std::size_t far = 0; far < 2 * rows(best) && !has_whole_batches(end); ++far)
      end = far < best && has_whole_batches(best - far) ? best - far : best + far;
    if (!has_whole_batches(end)) end = best;
    if (end <= begin) continue;
    limits.push_back(lengths[end - 1]);
    begin = end;
  }
  return limits;
}

}  // namespace millrace::training
