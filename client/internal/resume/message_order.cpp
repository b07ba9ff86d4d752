// SPDX-License-Identifier: Apache-2.0
#include "client/internal/resume/message_order.h"

#include <algorithm>
#include <chrono>

namespace millrace {
namespace {

constexpr std::chrono::seconds ack_period{1};

}  // namespace

MessageOrder::Verdict MessageOrder::receive(const Place& place) {
  if (place.n < next_) return Verdict::drop;
  if (place.n > next_) return Verdict::invalid;
  ++next_;
  const bool old = (place.result && *place.result < old_results_) ||
                   (place.flushed && *place.flushed < old_flushed_);
  if (place.result) results_ = std::max(results_, *place.result + 1);
  if (place.flushed) flushed_ = std::max(flushed_, *place.flushed + 1);
  return old ? Verdict::drop : Verdict::deliver;
}

void MessageOrder::resumed(bool kept, Time now) {
  acked(now);
  if (kept) return;
  old_results_ = results_;
  old_flushed_ = flushed_;
}

std::optional<Time> MessageOrder::ack_due() const {
  if (acked_ == next_) return std::nullopt;
  return acked_at_ + ack_period;
}

void MessageOrder::acked(Time now) {
  acked_ = next_;
  acked_at_ = now;
}

}  // namespace millrace
