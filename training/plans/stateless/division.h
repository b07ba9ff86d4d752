// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "training/contract/plan.h"
#include "training/plans/stateless/item_order.h"
#include "training/plans/stateless/row_maker.h"

namespace millrace::training {

class StatelessEpoch;

// A sequence of items divided into batches: batches of equal size, or any batches. Immutable.
class BatchRanges {
 public:
  // Batches of `each` items; the last may have fewer. Requires: each >= 1.
  BatchRanges(std::uint64_t items, std::uint64_t each) : items_(items), each_(each) {}
  // Batches that begin at these items, ascending from 0.
  BatchRanges(std::uint64_t items, std::vector<std::uint64_t> begins)
      : items_(items), each_(0), begins_(std::move(begins)) {}

  std::uint64_t size() const { return each_ == 0 ? begins_.size() : (items_ + each_ - 1) / each_; }
  // The items of a batch: [first, second).
  std::pair<std::uint64_t, std::uint64_t> operator[](std::uint64_t batch) const {
    if (each_ > 0) return {batch * each_, std::min((batch + 1) * each_, items_)};
    return {begins_[batch], batch + 1 < begins_.size() ? begins_[batch + 1] : items_};
  }

 private:
  std::uint64_t items_, each_;
  std::vector<std::uint64_t> begins_;
};

// The rows of one bucket in batches. At each step, all ranks have batches of one group.
struct BatchGroup {
  std::size_t number = 0;  // number of the bucket in StatelessEpoch::items()
  // Fewest columns of its batches. So ranks have equal widths, where the width is that of a bucket.
  std::uint32_t least = 0;
  std::uint64_t own = 0;            // items that stay in this group, from the first one on
  std::vector<PlannedRow> moved{};  // rows of narrower groups
  bool moved_first = false;         // in the batches they precede the own ones, or follow them
  BatchRanges batches{0, 1};
  std::uint64_t steps = 0;
  // The batches that no rank gets: [first, first + count).
  std::uint64_t left_out = 0, left_out_count = 0;
};

// Reads the rows of a group, in the order of its batches. Confined to one thread.
class GroupRows {
 public:
  // The arguments must outlive it.
  GroupRows(const StatelessEpoch& epoch, const BatchGroup& group);

  // Writes the rows [begin, end), of which the first has slot 0.
  void read(std::uint64_t begin, std::uint64_t end, std::vector<PlannedRow>& into);

 private:
  const StatelessEpoch& epoch_;
  const BatchGroup& group_;
  ItemOrder order_;
  RowMaker maker_;
  std::vector<Item> items_;
};

// The batches of a stateless epoch for one number of ranks, in groups from narrow to wide.
//
// A step needs a batch for each rank. The remainder of a bucket is moved into the next wider one,
// up to a bucket that is drawn for the epoch. Wider buckets than that are completed with rows of
// narrower ones. So only the drawn one has a remainder, of fewer batches than ranks: it is left
// out, or padding completes its step. If the limits decide which rows fit, a bucket that has fewer
// batches than ranks and a row for each of them is divided into more batches. A bucket that is
// smaller than a step is therefore used in other epochs, if not in this one.
//
// It is also drawn whether wider buckets take from the narrowest one first or from the nearest one,
// and whether rows that were moved come first or last: else the same rows could always be left out.
//
// Immutable after construction, and thread-safe.
class Division {
 public:
  // The references are used by the constructor only.
  Division(const StatelessEpoch& epoch, std::uint32_t world, const Poll& poll);

  std::uint32_t world() const { return world_; }
  const std::vector<BatchGroup>& groups() const { return groups_; }
  // The group of a step in the order of the groups, and the number of this step in it.
  std::pair<std::size_t, std::uint64_t> find(std::uint64_t step) const;
  std::uint64_t steps() const { return steps_; }

 private:
  class Filling;

  void divide(const StatelessEpoch& epoch, std::size_t target, const Poll& poll);
  Filling divided(const StatelessEpoch& epoch, const BatchGroup& group, const Poll& poll,
                  std::uint64_t parts = 0) const;
  void complete(const StatelessEpoch& epoch, std::size_t wide, Filling& filling);
  void move_up(const StatelessEpoch& epoch, std::size_t narrow, Filling& filling);
  void finish(const StatelessEpoch& epoch, BatchGroup& group, Filling filling, const Poll& poll);

  std::uint32_t world_;
  bool narrow_first_ = false;
  std::vector<BatchGroup> groups_;  // those with rows
  std::uint64_t steps_ = 0;
};

}  // namespace millrace::training
