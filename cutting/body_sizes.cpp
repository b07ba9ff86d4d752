// SPDX-License-Identifier: Apache-2.0
#include "cutting/body_sizes.h"

#include <cassert>
#include <utility>

namespace millrace {

BodySizes::BodySizes(const ChunkRule& rule, const Decisions& stream)
    : rule_(rule),
      stats_(stream.stats),
      chosen_(stream.chosen_size),
      size_(stream.requested_size.value_or(rule.spec.size)),
      in_force_(rule.spec.size) {
  assert(!rule.sizes.sizes.empty());
  if (stream.requested_size) return;
  if (rule.sizes.by == SizeRule::By::random) {
    cause_ = Cause::drawn;
    size_ = choice_.emplace<SizeDraws>(rule.sizes, stream.stream)[0];
  } else if (rule.sizes.by == SizeRule::By::adaptive) {
    cause_ = Cause::load;
    size_ = chosen_ && *chosen_ > 0 ? *chosen_ : rule.sizes.sizes.smallest();
    choice_.emplace<AdaptiveSize>(
        AdaptiveSize::Pipeline{rule.sizes.sizes, stream.max_wait, stream.rate}, stream.stream,
        size_);
  }
}

std::optional<Event> BodySizes::next(bool first_of_run, Duration waited) {
  if (!std::exchange(begins_, false)) return std::nullopt;
  const std::uint32_t size = choose(waited);
  if (size != size_ && stats_)
    stats_->size_changes[size > size_ ? SizeChange::up : SizeChange::down].add();
  size_ = size;
  const std::uint32_t body = first_of_run ? rule_.first_body(size) : size;
  if (body == in_force_) return std::nullopt;
  in_force_ = body;
  return Event{.kind = Event::Kind::size, .cause = cause_, .count = body};
}

std::uint32_t BodySizes::choose(Duration waited) {
  if (const auto* draws = std::get_if<SizeDraws>(&choice_)) return (*draws)[rows_];
  auto* adaptive = std::get_if<AdaptiveSize>(&choice_);
  if (adaptive == nullptr) return size_;
  const std::uint32_t size = adaptive->next(waited, position_);
  if (chosen_) *chosen_ = size;
  return size;
}

}  // namespace millrace
