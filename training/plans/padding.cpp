// SPDX-License-Identifier: Apache-2.0
#include "training/plans/padding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "chunker/lengths.h"
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

// The part of the warning on dividing long streams: the ends of slots then differ by at most one
// short stream. Empty if no stream is longer than that.
std::string limit_hint(const Catalog& catalog, const PlanOptions& options) {
  std::uint64_t all = 0, longest = 0;
  for (std::uint64_t i = 0; i < catalog.size(); ++i) {
    all += catalog.frames(i);
    longest = std::max(longest, catalog.frames(i));
  }
  const double rate = catalog.frame_type().rate;
  const double seconds = most_padding * static_cast<double>(all) / options.slots / rate;
  if (static_cast<double>(longest) <= seconds * rate) return {};
  const double digit = std::pow(10, std::floor(std::log10(seconds)));
  const double round = seconds >= 5 * digit ? 5 * digit : seconds >= 2 * digit ? 2 * digit : digit;
  const std::uint32_t chunk = options.chunk ? options.chunk->spec.size : 1;
  if (round * rate < 10 * chunk) return {};  // most of a row would be padding
  return "; max_stream = \"" + readable(round) + "s\" divides the long streams";
}

}  // namespace

double padding_of(const PlanTotals& totals) {
  const auto all = static_cast<double>(totals.rows + totals.padding_rows);
  return all > 0 ? static_cast<double>(totals.padding_rows) / all : 0;
}

std::optional<std::string> padding_warning(const Catalog& catalog, const PlanOptions& options,
                                           Rank rank, const PlanTotals& totals, const Poll& poll) {
  const double padding = padding_of(totals);
  if (options.mode != PlanMode::stateful || padding <= most_padding) return std::nullopt;
  const std::string begin =
      percent(padding) + " of the rows are padding with slots = " + std::to_string(options.slots) +
      ": ";
  const std::string hint = limit_hint(catalog, options);
  const EpochStreams streams(catalog, options, 0, poll);
  const StreamCutter cutter(catalog, options, 0);
  const std::uint64_t key = draw_key(options.seed, Purpose::slots, 0);
  const auto suffices = [&](std::uint32_t slots) {
    const Deal deal(streams, cutter, {.slots = slots, .shuffle = options.shuffle, .key = key},
                    poll);
    return padding_of(deal.totals()) <= most_padding;
  };
  // Less padding needs fewer slots. The steps become smaller as the number does.
  for (std::uint32_t groups = options.slots / rank.world; groups > 1;) {
    groups -= std::max(groups / 8, 1u);
    if (suffices(groups * rank.world))
      return begin + "slots = " + std::to_string(groups * rank.world) + " gives at most " +
             percent(most_padding) + hint;
  }
  return begin + "fewer slots do not help, as some streams are much longer than the others" + hint;
}

}  // namespace millrace::training
