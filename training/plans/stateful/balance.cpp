// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateful/balance.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace millrace::training {
namespace {

constexpr int most_rounds = 32;

// Exchanges streams of two slots.
class Balance {
 public:
  Balance(const DealtStreams& dealt, std::vector<std::uint64_t>& slot_steps)
      : dealt_(dealt), slot_steps_(slot_steps), order_(slot_steps.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    all_ = std::accumulate(slot_steps.begin(), slot_steps.end(), std::uint64_t{0});
  }

  // True if at least a thousandth is padding.
  bool is_due() const {
    const std::uint64_t longest = std::ranges::max(slot_steps_);
    return (longest * slot_steps_.size() - all_) * 1000 > longest * slot_steps_.size();
  }

  // The longest slot with the shortest, the second longest with the second shortest, and so on.
  void round() {
    std::ranges::stable_sort(order_, std::ranges::greater(),
                             [&](std::size_t slot) { return slot_steps_[slot]; });
    for (std::size_t i = 0; i < order_.size() / 2; ++i)
      exchange(order_[i], order_[order_.size() - 1 - i]);
  }

 private:
  std::span<std::uint32_t> sorted(std::size_t slot) {
    const auto streams =
        dealt_.streams.subspan(dealt_.begins[slot], dealt_.begins[slot + 1] - dealt_.begins[slot]);
    std::ranges::sort(
        streams, {}, [&](std::uint32_t stream) { return std::pair(dealt_.steps[stream], stream); });
    return streams;
  }

  // Exchanges the two streams whose difference is nearest to half of that of the slots.
  void exchange(std::size_t longer, std::size_t shorter) {
    const std::uint64_t difference = slot_steps_[longer] - slot_steps_[shorter];
    const std::span<std::uint32_t> a = sorted(longer), b = sorted(shorter);
    std::uint64_t best = difference;  // the difference after the exchange
    std::optional<std::pair<std::size_t, std::size_t>> pair;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
      const std::uint64_t x = dealt_.steps[a[i]], y = dealt_.steps[b[j]];
      if (x <= y) {
        ++i;
        continue;
      }
      const std::uint64_t twice = 2 * (x - y);
      const std::uint64_t after = twice > difference ? twice - difference : difference - twice;
      if (after < best) {
        best = after;
        pair = {i, j};
      }
      twice > difference ? ++j : ++i;
    }
    if (!pair) return;
    std::uint32_t &x = a[pair->first], &y = b[pair->second];
    const std::uint64_t moved = dealt_.steps[x] - dealt_.steps[y];
    slot_steps_[longer] -= moved;
    slot_steps_[shorter] += moved;
    std::swap(x, y);
  }

  const DealtStreams& dealt_;
  std::vector<std::uint64_t>& slot_steps_;
  std::vector<std::size_t> order_;  // the slots, longest first
  std::uint64_t all_;
};

}  // namespace

void balance(const DealtStreams& dealt, std::vector<std::uint64_t>& slot_steps) {
  Balance balance(dealt, slot_steps);
  for (int i = 0; i < most_rounds && balance.is_due(); ++i) {
    const std::uint64_t longest = std::ranges::max(slot_steps);
    balance.round();
    if (std::ranges::max(slot_steps) == longest) return;
  }
}

}  // namespace millrace::training
