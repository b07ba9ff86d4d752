// SPDX-License-Identifier: Apache-2.0
#include "training/plans/plan_checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <type_traits>

#include "chunker/lengths.h"
#include "training/plans/order/length_order.h"

namespace millrace::training {
namespace {

using Outcome = Result<void, PlanError>;

PlanError wrong(std::string_view key, const std::string& value, const std::string& sentence) {
  return {std::string(key), std::string(key) + " = " + value + " " + sentence};
}

PlanError missing(std::string_view key, const std::string& sentence) {
  return {std::string(key), std::string(key) + " is missing: " + sentence};
}

bool is_returnn(PlanMode mode) {
  return mode == PlanMode::returnn_classic || mode == PlanMode::returnn_torch;
}

std::string quoted(const std::string& text) { return text.empty() ? "" : '"' + text + '"'; }

// A key that only some modes have.
struct ModeKey {
  std::string_view name;
  std::function<std::string(const PlanOptions&)> value;  // empty: the key is not set
  std::array<bool, count_of<PlanMode>()> in;             // stateful, stateless, classic, torch
  std::string_view why;
};

std::string if_set(std::uint64_t value) { return value > 0 ? std::to_string(value) : ""; }

const std::array mode_keys{
    ModeKey{"slots",
            [](const PlanOptions& o) { return if_set(o.slots); },
            {true, false, false, false},
            "only stateful plans have slots; the key for the rows of a batch is rows"},
    ModeKey{"rows",
            [](const PlanOptions& o) { return if_set(o.rows); },
            {false, true, true, true},
            "a batch has a row for each slot of its rank; the key for their number is slots"},
    ModeKey{"max_padded_frames",
            [](const PlanOptions& o) { return if_set(o.max_padded_frames); },
            {false, true, true, true},
            "the slots determine the size of a batch"},
    ModeKey{"max_waste",
            [](const PlanOptions& o) { return o.max_waste > 0 ? readable(o.max_waste) : ""; },
            {false, true, false, false},
            "only stateless plans have this limit"},
    ModeKey{"shuffle_window",
            [](const PlanOptions& o) { return if_set(o.shuffle_window); },
            {false, true, true, true},
            "the streams of all slots are read at the same time"},
    ModeKey{"order",
            [](const PlanOptions& o) { return quoted(o.order); },
            {false, true, true, true},
            "the streams of all slots are read at the same time"},
    ModeKey{"buckets",
            [](const PlanOptions& o) { return if_set(o.buckets.size() + o.bucket_count); },
            {false, true, false, false},
            "only stateless plans group streams by length"},
    ModeKey{"drop_last",
            [](const PlanOptions& o) { return std::string(o.drop_last ? "" : "false"); },
            {false, true, true, true},
            "ranks get equal numbers of batches by their slots"},
    ModeKey{"packed_batch_size",
            [](const PlanOptions& o) { return if_set(o.packed_batch_size); },
            {false, false, true, true},
            "only RETURNN's modes have this limit"},
    ModeKey{"max_pad_size",
            [](const PlanOptions& o) { return if_set(o.max_pad_size); },
            {false, false, true, false},
            "only mode = \"returnn-classic\" has this limit"},
};

Outcome check_mode_keys(const PlanOptions& options) {
  for (const ModeKey& key : mode_keys)
    if (const std::string value = key.value(options);
        !value.empty() && !key.in[static_cast<std::size_t>(options.mode)])
      return wrong(key.name, value,
                   "cannot be set with mode = \"" + std::string(mode_name(options.mode)) +
                       "\": " + std::string(key.why));
  return {};
}

Outcome check_rank(Rank rank) {
  if (rank.world < 1) return wrong("world", "0", "must be at least 1");
  if (rank.rank < rank.world) return {};
  return wrong("rank", std::to_string(rank.rank),
               "must be less than world, which is " + std::to_string(rank.world));
}

Outcome check_frequencies(const Catalog& catalog, const PlanOptions& options) {
  const auto& frequencies = options.frequencies;
  const std::size_t parts = catalog.parts().size() - 1;
  if (!frequencies.empty() && frequencies.size() != parts)
    return PlanError{"streams", "streams has " + std::to_string(frequencies.size()) +
                                    " frequencies for " + std::to_string(parts) + " catalogs"};
  for (const double frequency : frequencies)
    if (!std::isfinite(frequency) || frequency < 0 || frequency > 1e6)
      return PlanError{"streams", "streams has the frequency " + readable(frequency) +
                                      "; it must be between 0 and 1000000"};
  return {};
}

// The streams that each epoch has at least.
std::uint64_t streams_of_epoch(const Catalog& catalog, const PlanOptions& options) {
  if (options.frequencies.empty()) return catalog.size();
  const std::vector<std::uint64_t> parts = catalog.parts();
  double streams = 0;
  for (std::size_t k = 0; k + 1 < parts.size(); ++k)
    streams +=
        std::floor(static_cast<double>(parts[k + 1] - parts[k]) * options.frequencies[k] + 1e-9);
  return static_cast<std::uint64_t>(streams);
}

Outcome check_stateful(const Catalog& catalog, const PlanOptions& options, Rank rank) {
  if (!options.chunk)
    return missing("chunk",
                   "mode = \"stateful\" needs the sizes of chunks, as in {\"size\": \"100ms\"}; "
                   "whole streams need mode = \"stateless\"");
  if (options.slots == 0)
    return missing("slots", "it is the number of streams that a step takes a chunk of");
  const std::string slots = std::to_string(options.slots);
  if (const std::uint64_t streams = streams_of_epoch(catalog, options); options.slots > streams)
    return wrong("slots", slots,
                 "is more than the " + std::to_string(streams) +
                     " streams of an epoch: each slot needs a stream");
  if (options.slots % rank.world == 0) return {};
  return wrong("world", std::to_string(rank.world),
               "does not divide slots, which is " + slots + ": each rank gets as many slots");
}

// RETURNN's cutting has few keys of a chunk rule. No other may be set: the value of a key that is
// not set is zero, or the first one.
Outcome check_returnn_rule(const PlanOptions& options) {
  constexpr std::array<std::string_view, 5> has{"size", "step", "min", "align", "pad"};
  std::string_view lacks;
  for_each_key(*options.chunk, [&](std::string_view name, const auto& value) {
    const bool set = value != std::remove_cvref_t<decltype(value)>{};
    if (lacks.empty() && set && std::ranges::find(has, name) == has.end()) lacks = name;
  });
  if (lacks.empty()) return {};
  return PlanError{
      "chunk", "chunk has the key " + std::string(lacks) + ", which cannot be set with mode = \"" +
                   std::string(mode_name(options.mode)) + "\": the keys are size, step and min"};
}

// Orders and groups by the lengths of whole streams.
Outcome check_lengths(const PlanOptions& options) {
  if (options.bucket_count > 0 && options.chunk)
    return wrong("buckets", std::to_string(options.bucket_count),
                 "cannot be set beside chunk: chunks need a list of limits");
  if (options.order.empty()) return {};
  const std::string order = quoted(options.order);
  if (!LengthOrder::parse(options.order))
    return wrong("order", order,
                 "must be sorted, sorted_reverse, laplace, laplace:BINS or laplace:.STREAMS, as in "
                 "\"laplace:.1000\"");
  if (options.mode == PlanMode::stateless && options.chunk)
    return wrong("order", order,
                 "cannot be set beside chunk: whole streams have an order by length");
  if (options.buckets.empty() && options.bucket_count == 0) return {};
  return wrong("order", order, "cannot be set beside buckets: both group streams by length");
}

Outcome check_limits(const PlanOptions& options) {
  if (const auto checked = check_lengths(options); !checked) return checked.error();
  if (is_returnn(options.mode) && options.chunk)
    if (const auto checked = check_returnn_rule(options); !checked) return checked.error();
  if (options.rows == 0 && options.max_padded_frames == 0 && options.packed_batch_size == 0)
    return missing("rows", is_returnn(options.mode)
                               ? "a batch needs one of the limits rows, max_padded_frames and "
                                 "packed_batch_size"
                               : "a batch needs one of the limits rows and max_padded_frames");
  if (!(options.max_waste >= 0 && options.max_waste < 1))
    return wrong("max_waste", readable(options.max_waste), "must be at least 0 and less than 1");
  return {};
}

Outcome check_ascending(std::string_view key, const std::vector<std::uint32_t>& values) {
  if (values.empty()) return {};
  const bool ascending =
      std::ranges::adjacent_find(values, std::ranges::greater_equal()) == values.end();
  if (ascending && values.front() >= 1) return {};
  return PlanError{std::string(key),
                   std::string(key) + " must have ascending numbers of at least 1 frame"};
}

}  // namespace

std::string_view mode_name(PlanMode mode) {
  switch (mode) {
    case PlanMode::stateful: return "stateful";
    case PlanMode::stateless: return "stateless";
    case PlanMode::returnn_classic: return "returnn-classic";
    case PlanMode::returnn_torch: return "returnn-torch";
  }
  return "";
}

Result<void, PlanError> check_options(const Catalog& catalog, const PlanOptions& options,
                                      Rank rank) {
  if (catalog.size() == 0) return PlanError{"streams", "streams has no streams"};
  for (const Outcome& outcome :
       {check_rank(rank), check_mode_keys(options), check_frequencies(catalog, options),
        check_ascending("buckets", options.buckets),
        check_ascending("width_buckets", options.width_buckets)})
    if (!outcome) return outcome.error();
  if (options.mode != PlanMode::stateful) return check_limits(options);
  return check_stateful(catalog, options, rank);
}

}  // namespace millrace::training
