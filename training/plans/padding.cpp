// SPDX-License-Identifier: Apache-2.0
#include "training/plans/padding.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "training/plans/order/epoch_streams.h"
#include "training/plans/order/permutation.h"
#include "training/plans/rows/stream_cutter.h"
#include "training/plans/stateful/deal.h"

namespace millrace::training {
namespace {

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

// The first epoch with other numbers of slots.
class Attempts {
 public:
  Attempts(const Catalog& catalog, const PlanOptions& options)
      : options_(options), streams_(catalog, options, 0), cutter_(catalog, options, 0) {}

  bool suffices(std::uint32_t slots) const {
    const Deal deal(streams_, cutter_,
                    {.slots = slots,
                     .shuffle = options_.shuffle,
                     .key = draw_key(options_.seed, Purpose::slots, 0)});
    return padding_of(deal.totals()) <= most_padding;
  }

 private:
  const PlanOptions& options_;
  EpochStreams streams_;
  StreamCutter cutter_;
};

}  // namespace

double padding_of(const PlanTotals& totals) {
  const auto all = static_cast<double>(totals.rows + totals.padding_rows);
  return all > 0 ? static_cast<double>(totals.padding_rows) / all : 0;
}

std::optional<std::string> padding_warning(const Catalog& catalog, const PlanOptions& options,
                                           Rank rank, const PlanTotals& totals) {
  const double padding = padding_of(totals);
  if (options.mode != PlanMode::stateful || padding <= most_padding) return std::nullopt;
  const std::string begin =
      percent(padding) + " of the rows are padding with slots = " + std::to_string(options.slots) +
      ": ";
  const Attempts attempts(catalog, options);
  // Less padding needs fewer slots. The steps become smaller as the number does.
  for (std::uint32_t groups = options.slots / rank.world; groups > 1;) {
    groups -= std::max(groups / 8, 1u);
    if (attempts.suffices(groups * rank.world))
      return begin + "slots = " + std::to_string(groups * rank.world) + " gives at most " +
             percent(most_padding);
  }
  return begin + "fewer slots do not help, as some streams are much longer than the others";
}

}  // namespace millrace::training
