// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "training/contract/poll.h"
#include "training/plans/order/epoch_streams.h"
#include "training/plans/order/windowed_permutation.h"

namespace millrace::training {

// An order of streams by their lengths, as RETURNN's `seq_ordering`. Immutable.
//
//   sorted, sorted_reverse   by length; streams of equal length keep the order of the catalog
//   laplace:8                the shuffled streams in 8 bins of equal size, sorted by length: the
//                            first bin ascending, the second descending, and so on
//   laplace:.1000            the same, in bins of about 1000 streams, at least two
//   laplace                  laplace:2
class LengthOrder {
 public:
  // Nullopt: the text is another one.
  static std::optional<LengthOrder> parse(std::string_view text);

  // Some places of `streams`, in this order. `shuffle` and `key` are those of the streams before
  // they are sorted.
  std::vector<std::uint32_t> sorted(const std::vector<std::uint32_t>& places,
                                    const EpochStreams& streams, const Shuffle& shuffle,
                                    std::uint64_t key, const Poll& poll) const;

 private:
  std::uint64_t bins_of(std::uint64_t streams) const;

  bool shuffled_ = false;
  bool descending_ = false;  // the first bin
  std::uint64_t bins_ = 1;
  std::uint64_t bin_size_ = 0;  // streams of a bin, instead of `bins_`
};

}  // namespace millrace::training
