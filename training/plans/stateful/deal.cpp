// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateful/deal.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "training/plans/order/permutation.h"
#include "training/plans/order/windowed_permutation.h"
#include "training/plans/stateful/balance.h"

namespace millrace::training {
namespace {

// Streams between two sums.
constexpr std::size_t sum_every = 64;

// The slots, ordered by their total length so far, in frames. The first of equal ones is the one
// with the lowest number.
class EmptiestSlot {
 public:
  explicit EmptiestSlot(std::uint32_t slots) : heap_(slots) {
    for (std::uint32_t i = 0; i < slots; ++i) heap_[i] = {0, i};
  }

  std::uint32_t slot() const { return heap_[0].slot; }

  void add(std::uint64_t frames) {
    Entry entry = heap_[0];
    entry.frames += frames;
    std::size_t at = 0;
    for (std::size_t child; (child = 2 * at + 1) < heap_.size(); at = child) {
      if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
      if (!(heap_[child] < entry)) break;
      heap_[at] = heap_[child];
    }
    heap_[at] = entry;
  }

 private:
  struct Entry {
    std::uint64_t frames;
    std::uint32_t slot;
    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> heap_;
};

// Classes of lengths, shortest first. The lengths of a class differ by at most 10 %.
class LengthClasses {
 public:
  // Classes for lengths of 1 … longest.
  explicit LengthClasses(std::uint64_t longest) {
    for (std::uint64_t begin = 1; begin <= longest; begin += begin / 10 + 1)
      begins_.push_back(begin);
  }

  std::size_t size() const { return begins_.size(); }
  // The number of the class. Requires: 1 <= length <= longest.
  std::uint16_t operator[](std::uint64_t length) const {
    const auto after = std::ranges::upper_bound(begins_, length);
    return static_cast<std::uint16_t>(after - begins_.begin() - 1);
  }

 private:
  std::vector<std::uint64_t> begins_;
};

constexpr std::uint32_t no_slot = std::numeric_limits<std::uint32_t>::max();

}  // namespace

// Steps and frames of each stream, by its place.
struct Deal::Lengths {
  Lengths(const EpochStreams& streams, const StreamCutter& cutter, const Poll& poll);

  // The places by length class, longest first; in a class in random order, or by length alone.
  std::vector<std::uint32_t> order(const Shuffle& shuffle, std::uint64_t key) const;
  void sort(std::span<std::uint32_t> places) const;

  const EpochStreams& streams;
  std::vector<std::uint32_t> steps;
  std::uint64_t rows = 0, frames = 0, dealt = 0;
  std::uint64_t longest = 0;
};

Deal::Lengths::Lengths(const EpochStreams& all, const StreamCutter& cutter, const Poll& poll)
    : streams(all) {
  Polling polling(poll);
  const std::uint64_t count = all.size();
  steps.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const StreamRef stream{all.stream(i), all.frames(i), all.has_events(i)};
    const RowCounts counts = cutter.counts(stream);
    polling.done();
    if (counts.framed > std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("stream " + std::to_string(stream.stream) + " has " +
                              std::to_string(counts.framed) +
                              " rows; the most that a plan can have is 2^32 - 1");
    steps.push_back(static_cast<std::uint32_t>(counts.framed));
    rows += counts.framed;
    frames += counts.frames;
    if (counts.framed == 0) continue;
    ++dealt;
    longest = std::max(longest, stream.frames);
  }
}

std::vector<std::uint32_t> Deal::Lengths::order(const Shuffle& shuffle, std::uint64_t key) const {
  const LengthClasses classes(longest);
  std::vector<std::uint16_t> class_of(steps.size());
  std::vector<std::size_t> begins(classes.size() + 1);  // longest class first
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == 0) continue;
    class_of[i] = static_cast<std::uint16_t>(classes.size() - 1 - classes[streams.frames(i)]);
    ++begins[class_of[i] + 1u];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::uint32_t> order(dealt);
  std::vector<std::size_t> ends(begins.begin(), begins.end());
  WindowedPermutation random(shuffle, steps.size(), key);
  for (std::uint64_t i = 0; i < steps.size(); ++i) {
    const auto place = static_cast<std::uint32_t>(random[i]);
    if (steps[place] > 0) order[ends[class_of[place]]++] = place;
  }
  if (shuffle.on) return order;
  for (std::size_t i = 0; i < classes.size(); ++i)
    sort(std::span(order).subspan(begins[i], begins[i + 1] - begins[i]));
  return order;
}

// Longest first; equal ones stay in their order.
void Deal::Lengths::sort(std::span<std::uint32_t> places) const {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> keys;
  keys.reserve(places.size());
  for (const std::uint32_t place : places) keys.emplace_back(~streams.frames(place), place);
  std::ranges::sort(keys);
  std::ranges::transform(keys, places.begin(), [](const auto& key) { return key.second; });
}

Deal::Deal(const EpochStreams& streams, const StreamCutter& cutter, const Settings& settings,
           const Poll& poll)
    : begins_(settings.slots + 1), slot_steps_(settings.slots) {
  const Lengths lengths(streams, cutter, poll);
  rows_ = lengths.rows;
  frames_ = lengths.frames;
  std::vector<std::uint32_t> slot_of(lengths.steps.size(), no_slot);
  EmptiestSlot emptiest(settings.slots);
  Polling polling(poll);
  for (const std::uint32_t place : lengths.order({.on = settings.shuffle}, draw(settings.key, 0))) {
    const std::uint32_t slot = slot_of[place] = emptiest.slot();
    emptiest.add(streams.frames(place));
    slot_steps_[slot] += lengths.steps[place];
    ++begins_[slot + 1];
    polling.done();
  }
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  fill(lengths, slot_of);
  if (settings.shuffle) {
    balance({places_, begins_, lengths.steps}, slot_steps_);
    shuffle(draw(settings.key, 1));
  }
  steps_ = std::ranges::max(slot_steps_);
  sum(lengths);
}

void Deal::fill(const Lengths& lengths, const std::vector<std::uint32_t>& slot_of) {
  places_.resize(lengths.dealt);
  std::vector<std::size_t> ends(begins_.begin(), begins_.end() - 1);
  for (std::uint32_t place = 0; place < slot_of.size(); ++place)
    if (slot_of[place] != no_slot) places_[ends[slot_of[place]]++] = place;
}

// Fisher and Yates, slot by slot.
void Deal::shuffle(std::uint64_t key) {
  using Wide = unsigned __int128;
  std::uint64_t drawn = 0;
  for (std::uint32_t slot = 0; slot < slots(); ++slot) {
    const std::size_t begin = begins_[slot];
    for (std::size_t left = begins_[slot + 1] - begin; left > 1; --left) {
      const auto other = static_cast<std::size_t>((Wide{left} * draw(key, drawn++)) >> 64);
      std::swap(places_[begin + left - 1], places_[begin + other]);
    }
  }
}

void Deal::sum(const Lengths& lengths) {
  lengths_.reserve(places_.size());
  for (const std::uint32_t place : places_) lengths_.push_back(lengths.steps[place]);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    if (i % sum_every == 0) sums_.push_back(sum);
    sum += lengths_[i];
  }
}

PlanTotals Deal::totals() const {
  return {.rows = rows_, .padding_rows = steps_ * slots() - rows_, .frames = frames_};
}

std::optional<Deal::Position> Deal::at(std::uint32_t slot, std::uint64_t step) const {
  if (step >= slot_steps_[slot]) return std::nullopt;
  // The steps of the streams before `stream`.
  const auto before = [&](std::size_t stream) {
    const std::size_t from = stream / sum_every;
    std::uint64_t sum = sums_[from];
    for (std::size_t i = from * sum_every; i < stream; ++i) sum += lengths_[i];
    return sum;
  };
  const std::uint64_t target = before(begins_[slot]) + step;
  const auto after = std::ranges::upper_bound(sums_, target);
  std::size_t stream = static_cast<std::size_t>(after - sums_.begin() - 1) * sum_every;
  std::uint64_t sum = sums_[stream / sum_every];
  while (sum + lengths_[stream] <= target) sum += lengths_[stream++];
  return Position{stream, target - sum};
}

}  // namespace millrace::training
