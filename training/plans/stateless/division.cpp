// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateless/division.h"

#include <algorithm>

#include "training/plans/order/permutation.h"
#include "training/plans/stateless/batch_limits.h"
#include "training/plans/stateless/stateless_plan.h"

namespace millrace::training {

GroupRows::GroupRows(const StatelessEpoch& epoch, const BatchGroup& group)
    : epoch_(epoch),
      group_(group),
      order_(epoch.items()[group.number], epoch.shuffle(), epoch.key(group.number)),
      maker_(epoch.row_maker()) {}

void GroupRows::read(std::uint64_t begin, std::uint64_t end, std::vector<PlannedRow>& into) {
  const std::uint64_t moved = group_.moved.size();
  const std::uint64_t first = group_.moved_first ? moved : 0;  // own row in the group's order
  const auto own = [&](std::uint64_t at) {
    return std::clamp(at, first, first + group_.own) - first;
  };
  order_.read(own(begin), own(end), items_);
  maker_.make(items_, epoch_.items()[group_.number], into);
  const std::uint64_t before = group_.moved_first ? 0 : group_.own;
  const auto at = [&](std::uint64_t row) {
    return group_.moved.begin() +
           static_cast<std::ptrdiff_t>(std::clamp(row, before, before + moved) - before);
  };
  into.insert(group_.moved_first ? into.begin() : into.end(), at(begin), at(end));
  for (std::size_t i = 0; i < into.size(); ++i) into[i].slot = static_cast<std::uint32_t>(i);
}

// The batches of a group so far.
class Division::Filling {
 public:
  // `parts`: fewest batches, if there are as many rows; 0: the limits alone decide.
  Filling(const StatelessEpoch& epoch, const BatchGroup& group, std::uint64_t parts)
      : each_(epoch.batch_rows(group.number)),
        limits_(epoch.options(), epoch.widths(), group.least),
        parts_(parts),
        all_(group.own + group.moved.size()) {}

  // The next rows, of a group with equal batches.
  void skip(std::uint64_t rows) { rows_ += rows; }
  void add(std::uint32_t columns) {
    if (each_ == 0 && !fits(columns)) {
      begins_.push_back(rows_);
      limits_.clear();
    }
    limits_.add(columns);
    ++rows_;
  }
  // True if a row fits into the last batch.
  bool fits(std::uint32_t columns) const {
    if (each_ > 0) return rows_ % each_ > 0;
    return !begins_.empty() && limits_.fits(columns) && !is_part();
  }
  // Keeps the first batches only.
  void cut(std::uint64_t batches) {
    rows_ = ranges()[batches].first;
    if (each_ == 0) begins_.resize(batches);
  }

  bool has_equal_batches() const { return each_ > 0; }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t batches() const { return each_ > 0 ? (rows_ + each_ - 1) / each_ : begins_.size(); }
  BatchRanges ranges() const {
    return each_ > 0 ? BatchRanges(rows_, each_) : BatchRanges(rows_, begins_);
  }

 private:
  // The last batch has its share of the rows.
  bool is_part() const {
    if (parts_ == 0) return false;
    const std::uint64_t larger = begins_.size() <= all_ % parts_ ? 1 : 0;
    return rows_ - begins_.back() >= all_ / parts_ + larger;
  }

  std::uint64_t each_;  // rows of a batch; 0: the limits decide
  BatchLimits limits_;
  std::uint64_t parts_, all_;  // all_: the rows of the group
  std::uint64_t rows_ = 0;
  std::vector<std::uint64_t> begins_;
};

Division::Division(const StatelessEpoch& epoch, std::uint32_t world, const Poll& poll)
    : world_(world) {
  std::vector<BatchGroup> groups;
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < epoch.items().size(); ++i)
    if (const std::uint64_t own = epoch.items()[i].size(); own > 0) {
      groups.push_back({.number = i, .least = epoch.above(i) + 1, .own = own});
      rows += own;
    }
  if (groups.empty()) return;
  const std::uint64_t key = draw_key(epoch.options().seed, Purpose::left_out, epoch.epoch());
  // A group is drawn as often as it has rows.
  std::size_t target = 0;
  for (std::uint64_t row = draw(key, 0) % rows; row >= groups[target].own; ++target)
    row -= groups[target].own;
  narrow_first_ = (draw(key, 1) & 1) > 0;
  // Another way may have a step if the drawn one has none.
  for (std::size_t way = 0; way < 2 * groups.size() && steps_ == 0; ++way) {
    if (way == groups.size()) narrow_first_ = !narrow_first_;
    groups_ = groups;
    divide(epoch, (target + way) % groups.size(), poll);
  }
}

void Division::divide(const StatelessEpoch& epoch, std::size_t target, const Poll& poll) {
  // A wider group takes rows from narrower ones before these are divided.
  for (std::size_t i = groups_.size(); --i > target;) {
    Filling filling = divided(epoch, groups_[i], poll);
    complete(epoch, i, filling);
    finish(epoch, groups_[i], std::move(filling), poll);
  }
  for (std::size_t i = 0; i <= target; ++i) {
    Filling filling = divided(epoch, groups_[i], poll);
    if (i < target) move_up(epoch, i, filling);
    finish(epoch, groups_[i], std::move(filling), poll);
  }
}

Division::Filling Division::divided(const StatelessEpoch& epoch, const BatchGroup& group,
                                    const Poll& poll, std::uint64_t parts) const {
  Filling filling(epoch, group, parts);
  const std::uint64_t rows = group.own + group.moved.size();
  if (filling.has_equal_batches()) {
    filling.skip(rows);
    return filling;
  }
  constexpr std::uint64_t at_once = 256;
  GroupRows reader(epoch, group);
  std::vector<PlannedRow> some;
  Polling polling(poll);
  for (std::uint64_t begin = 0; begin < rows; begin += at_once) {
    reader.read(begin, std::min(begin + at_once, rows), some);
    for (const PlannedRow& row : some) filling.add(epoch.widths().columns(row.row));
    polling.done(some.size());
  }
  return filling;
}

// Takes the last rows of narrower groups, until each rank has a batch of the last step.
void Division::complete(const StatelessEpoch& epoch, std::size_t wide, Filling& filling) {
  if (filling.batches() % world_ == 0) return;
  for (std::size_t i = 0; i < wide; ++i) {
    BatchGroup& from = groups_[narrow_first_ ? i : wide - 1 - i];
    GroupRows reader(epoch, from);
    for (std::vector<PlannedRow> row; from.own > 0; --from.own) {
      reader.read(from.own - 1, from.own, row);
      const std::uint32_t columns = epoch.widths().columns(row.front().row);
      if (filling.batches() % world_ == 0 && !filling.fits(columns)) return;
      filling.add(columns);
      groups_[wide].moved.push_back(row.front());
    }
  }
}

void Division::move_up(const StatelessEpoch& epoch, std::size_t narrow, Filling& filling) {
  const std::uint64_t remainder = filling.batches() % world_, rows = filling.rows();
  if (remainder == 0) return;
  BatchGroup& from = groups_[narrow];
  filling.cut(filling.batches() - remainder);
  std::vector<PlannedRow> moved;
  GroupRows(epoch, from).read(filling.rows(), rows, moved);
  groups_[narrow + 1].moved = std::move(moved);
  groups_[narrow + 1].moved_first = narrow_first_;
  if (from.moved_first) {
    from.moved.resize(std::min<std::uint64_t>(from.moved.size(), filling.rows()));
    from.own = filling.rows() - from.moved.size();
  } else {
    from.own = std::min(from.own, filling.rows());
    from.moved.resize(filling.rows() - from.own);
  }
}

// Where the limits decide which rows fit, a few rows may fit into one batch in one epoch, and need
// several in others. So they are enough for a step in all epochs.
void Division::finish(const StatelessEpoch& epoch, BatchGroup& group, Filling filling,
                      const Poll& poll) {
  const bool is_small = epoch.options().drop_last && !filling.has_equal_batches() &&
                        filling.batches() < world_ && filling.rows() >= world_;
  group.batches = (is_small ? divided(epoch, group, poll, world_) : std::move(filling)).ranges();
  const std::uint64_t batches = group.batches.size(), remainder = batches % world_;
  group.steps = batches / world_;
  if (!epoch.options().drop_last && remainder > 0) ++group.steps;
  steps_ += group.steps;
  if (!epoch.options().drop_last) return;
  // Rows in random order end with other batches in each epoch. Otherwise their place is drawn: one
  // long stream ends with the same rows.
  const bool anywhere = !epoch.shuffle().on || !group.moved.empty() ||
                        epoch.items()[group.number].order == Items::Order::streams;
  const std::uint64_t key = draw_key(epoch.options().seed, Purpose::batches, epoch.epoch());
  group.left_out = anywhere ? draw(key, 0) % (batches - remainder + 1) : batches - remainder;
  group.left_out_count = remainder;
}

std::pair<std::size_t, std::uint64_t> Division::find(std::uint64_t step) const {
  std::size_t group = 0;
  for (; step >= groups_[group].steps; ++group) step -= groups_[group].steps;
  return {group, step};
}

}  // namespace millrace::training
