// SPDX-License-Identifier: Apache-2.0
#include "training/plans/rows/sized_rows.h"

#include <algorithm>
#include <cassert>

namespace millrace::training {

SizedRows::SizedRows(const ChunkRule& rule, std::string_view name, std::uint64_t frames)
    : rule_(&rule), frames_(frames) {
  if (rule.sizes.by == SizeRule::By::random) draws_.emplace(rule.sizes, name);
  choose();
}

// The size is chosen when a body begins. If the stream ends before the row is ready, the size stays
// in force for all rows that the end yields.
void SizedRows::choose() {
  if (!tail_) {
    body_ = draws_ ? (*draws_)[number_] : rule_->spec.size;
    if (number_ == 0) body_ = rule_->first_body(body_);
    tail_ = begin_ + body_ + rule_->spec.right > frames_;
  }
  size_ = cut(begin_, number_ == 0);
}

// The size of a body that begins at `begin`; 0: it is left out.
std::uint32_t SizedRows::cut(std::uint64_t begin, bool first) const {
  const std::uint64_t rest = frames_ > begin ? frames_ - begin : 0;
  if (rest >= body_) return body_;
  const bool left_out = rule_->spec.tail == Spec::Tail::drop || (!first && rest < rule_->spec.min);
  return left_out ? 0 : static_cast<std::uint32_t>(rest);
}

Row SizedRows::row() const {
  assert(!ended());
  Row row;
  row.seq = number_;
  row.begin = begin_;
  row.size = size_;
  row.left = static_cast<std::uint32_t>(std::min<std::uint64_t>(rule_->spec.left, begin_));
  const std::uint64_t rest = frames_ - begin_ - size_;
  row.right = static_cast<std::uint32_t>(std::min<std::uint64_t>(rule_->spec.right, rest));
  if (number_ == 0) {
    row.flags = flag::start | flag::reset | flag::segment;
    row.reason = ResetReason::start;
  }
  if (tail_ && cut(begin_ + body_, false) == 0) row.flags |= flag::last | flag::end;
  return row;
}

void SizedRows::advance() {
  assert(!ended());
  closed_ = tail_;
  begin_ += body_;
  ++number_;
  choose();
}

RowCounts count_rows(SizedRows rows) {
  RowCounts counts;
  for (; !rows.ended(); rows.advance()) {
    ++counts.framed;
    counts.frames += rows.size();
  }
  counts.marker = rows.has_marker();
  return counts;
}

}  // namespace millrace::training
