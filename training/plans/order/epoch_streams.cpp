// SPDX-License-Identifier: Apache-2.0
#include "training/plans/order/epoch_streams.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace millrace::training {
namespace {

using Wide = unsigned __int128;

// Frequencies count in billionths, so that sums over epochs are exact.
constexpr double billion = 1e9;

// The index in the endless sequence where an epoch begins.
std::uint64_t sequence_begin(std::uint64_t streams, double frequency, std::uint64_t epoch) {
  const auto share = static_cast<std::uint64_t>(std::llround(frequency * billion));
  return static_cast<std::uint64_t>(Wide{streams} * share * epoch /
                                    static_cast<std::uint64_t>(billion));
}

}  // namespace

EpochStreams::EpochStreams(const Catalog& catalog, const PlanOptions& options, std::uint64_t epoch,
                           const Poll& poll)
    : catalog_(catalog), shuffle_{options.shuffle, options.shuffle_window}, seed_(options.seed) {
  const std::vector<std::uint64_t> borders = catalog.parts();
  std::uint64_t place = 0;
  for (std::size_t k = 0; k + 1 < borders.size(); ++k) {
    Part part{.begin = place, .streams = borders[k], .count = borders[k + 1] - borders[k]};
    const double frequency = k < options.frequencies.size() ? options.frequencies[k] : 1.0;
    part.once = frequency == 1.0;
    is_plain_ = is_plain_ && part.once;
    part.from = sequence_begin(part.count, frequency, epoch);
    place += sequence_begin(part.count, frequency, epoch + 1) - part.from;
    parts_.push_back(part);
  }
  parts_.push_back({.begin = place});
  if (!options.frames) return;
  lengths_.reserve(size());
  for (std::uint64_t i = 0; i < size(); ++i) {
    lengths_.push_back(options.frames(epoch, stream(i), copy(i)));
    if (poll) poll();  // a function of the user may take long
  }
}

bool EpochStreams::has_events(std::uint64_t place) const {
  const std::uint64_t number = stream(place);
  return catalog_.has_events(number) &&
         (lengths_.empty() || lengths_[place] == catalog_.frames(number));
}

const EpochStreams::Part& EpochStreams::part_of(std::uint64_t place) const {
  assert(place < size());
  return *(std::ranges::upper_bound(parts_, place, {}, &Part::begin) - 1);
}

WindowedPermutation EpochStreams::round_of(const Part& part, std::uint64_t round) const {
  const auto number = static_cast<std::uint64_t>(&part - parts_.data());
  return {shuffle_, part.count, draw_key(seed_, Purpose::sequence, number, round)};
}

std::uint64_t EpochStreams::stream_of(std::uint64_t place) const {
  const Part& part = part_of(place);
  if (part.once) return part.streams + (place - part.begin);
  const std::uint64_t index = part.from + (place - part.begin);
  return part.streams + round_of(part, index / part.count)[index % part.count];
}

// A round of the sequence has each stream once. The epoch has only the end of its first round.
std::uint32_t EpochStreams::copy_of(std::uint64_t place) const {
  const Part& part = part_of(place);
  const std::uint64_t first = part.once ? 0 : part.from / part.count;
  const std::uint64_t rounds = (part.from + (place - part.begin)) / part.count - first;
  if (part.once || rounds == 0) return 0;
  const std::uint64_t stream = stream_of(place) - part.streams;
  const bool in_first = round_of(part, first).place_of(stream) >= part.from % part.count;
  return static_cast<std::uint32_t>(in_first ? rounds : rounds - 1);
}

}  // namespace millrace::training
