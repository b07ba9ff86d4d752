// SPDX-License-Identifier: Apache-2.0
#include "training/plans/order/length_order.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace millrace::training {

std::optional<LengthOrder> LengthOrder::parse(std::string_view text) {
  LengthOrder order;
  order.descending_ = text == "sorted_reverse";
  if (text == "sorted" || text == "sorted_reverse") return order;
  constexpr std::string_view name = "laplace";
  if (!text.starts_with(name)) return std::nullopt;
  text.remove_prefix(name.size());
  order.shuffled_ = true;
  order.bins_ = 2;
  if (text.empty()) return order;
  const bool by_size = text.starts_with(":.");
  if (!text.starts_with(":")) return std::nullopt;
  text.remove_prefix(by_size ? 2 : 1);
  std::uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size() || number == 0) return std::nullopt;
  (by_size ? order.bin_size_ : order.bins_) = number;
  return order;
}

std::uint64_t LengthOrder::bins_of(std::uint64_t streams) const {
  return bin_size_ > 0 ? std::max<std::uint64_t>(streams / bin_size_, 2) : bins_;
}

std::vector<std::uint32_t> LengthOrder::sorted(const std::vector<std::uint32_t>& places,
                                               const EpochStreams& streams, const Shuffle& shuffle,
                                               std::uint64_t key, const Poll& poll) const {
  const std::uint64_t count = places.size();
  // More bins than streams have at most one stream each.
  const std::uint64_t bins = std::min(bins_of(count), std::max<std::uint64_t>(count, 1));
  WindowedPermutation order({shuffle.on && shuffled_, shuffle.window}, count, key);
  std::vector<std::uint32_t> sorted;
  sorted.reserve(count);
  Polling polling(poll);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> bin;  // length and place
  for (std::uint64_t number = 0; number < bins; ++number) {
    bin.clear();
    for (std::uint64_t i = number * count / bins; i < (number + 1) * count / bins; ++i) {
      const std::uint32_t place = places[order[i]];
      bin.emplace_back(streams.frames(place), place);
      polling.done();
    }
    const bool descending = descending_ != (number % 2 == 1);
    std::ranges::stable_sort(bin, [&](const auto& a, const auto& b) {
      return descending ? a.first > b.first : a.first < b.first;
    });
    for (const auto& [length, place] : bin) sorted.push_back(place);
  }
  return sorted;
}

}  // namespace millrace::training
