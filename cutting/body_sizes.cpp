// SPDX-License-Identifier: Apache-2.0
#include "cutting/body_sizes.h"

#include <cassert>
#include <utility>

namespace millrace {

namespace {

Cause cause_of(SizeRule::By by) {
  switch (by) {
    case SizeRule::By::fixed: return Cause::client;
    case SizeRule::By::adaptive: return Cause::load;
    case SizeRule::By::random: return Cause::drawn;
  }
  return Cause::client;
}

}  // namespace

BodySizes::BodySizes(const ChunkRule& rule, const Stream& stream, CutStats& stats,
                     std::uint32_t& chosen)
    : rule_(rule),
      stream_(stream),
      stats_(stats),
      chosen_(chosen),
      size_(rule.spec.size),
      in_force_(rule.spec.size) {
  assert(!rule.sizes.sizes.empty());
  if (stream.requested) {
    size_ = *stream.requested;
  } else if (rule.sizes.by == SizeRule::By::random) {
    size_ = drawn_size(rule.sizes, stream.name, 0);
  } else if (rule.sizes.by == SizeRule::By::adaptive) {
    size_ = chosen > 0 ? chosen : rule.sizes.sizes.smallest();
    adaptive_.emplace(AdaptiveSize::Pipeline{rule.sizes.sizes, stream.max_wait, stream.rate},
                      stream.name, size_);
  }
}

std::optional<Event> BodySizes::next(const SegmentProgress& progress, Duration waited) {
  if (!std::exchange(begins_, false)) return std::nullopt;
  const std::uint32_t size = stream_.requested ? *stream_.requested : choose(waited);
  if (size != size_) stats_.size_changes[size > size_ ? SizeChange::up : SizeChange::down].add();
  size_ = size;
  const std::uint32_t body = progress.first_of_run() ? rule_.first_body(size) : size;
  if (body == in_force_) return std::nullopt;
  in_force_ = body;
  const Cause cause = stream_.requested ? Cause::client : cause_of(rule_.sizes.by);
  return Event{.kind = Event::Kind::size, .cause = cause, .count = body};
}

std::uint32_t BodySizes::choose(Duration waited) {
  switch (rule_.sizes.by) {
    case SizeRule::By::fixed: return rule_.spec.size;
    case SizeRule::By::adaptive: return chosen_ = adaptive_->next(waited, position_);
    case SizeRule::By::random: return drawn_size(rule_.sizes, stream_.name, rows_);
  }
  return rule_.spec.size;
}

}  // namespace millrace
