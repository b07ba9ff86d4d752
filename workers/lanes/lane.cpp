// SPDX-License-Identifier: Apache-2.0
#include "workers/lanes/lane.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "schemas/worker_messages.h"

namespace millrace {

namespace {

std::size_t rows_in(const Batch& batch) { return batch.framed.size() + batch.marks.size(); }

std::string in_words(Duration time) {
  using namespace std::chrono;
  if (time % 1s != 0s) return std::to_string(duration_cast<milliseconds>(time).count()) + " ms";
  return std::to_string(duration_cast<seconds>(time).count()) + " s";
}

}  // namespace

Lane::Lane(LaneId id, const BatchRule& rule, std::uint32_t credits, Time now)
    : id_(id), credits_(credits), batcher_(rule), last_received_(now), answer_since_(now) {}

Batch* Lane::close(BatchId id, bool has_slab, Time now) {
  if (has_slab)
    without_slab_.reset();
  else if (!without_slab_)
    without_slab_ = {now};
  const auto choice = next(now);
  if (!has_slab && choice && !without_slab_->batch_since) without_slab_->batch_since = now;
  if (!has_slab || !choice) return nullptr;
  Batch batch;
  if (!spare_.empty()) {
    batch = std::move(spare_.back());
    spare_.pop_back();
  }
  batcher_.close(*choice, now, batch);
  batch.id = id;
  if (held_.empty()) answer_since_ = now;
  rows_held_ += rows_in(batch);
  held_.push_back(std::move(batch));
  return &held_.back();
}

Lane::Order Lane::order_of(BatchId id) const {
  if (!held_.empty() && held_.front().id == id) return Order::next;
  for (std::size_t i = 0; i < done_.size(); ++i)
    if (done_[i] == id) return Order::repeated;
  return Order::wrong;
}

Batch Lane::finish(Time now) {
  assert(!held_.empty());
  Batch batch = std::move(held_.front());
  held_.pop_front();
  rows_held_ -= rows_in(batch);
  finished_trial_ = batch.is_trial();
  done_.push_back(batch.id);
  if (done_.size() > worker_protocol::max_credits) done_.pop_front();
  answer_since_ = now;
  return batch;
}

void Lane::reuse(Batch batch) {
  batch.framed.clear();
  batch.marks.clear();
  spare_.push_back(std::move(batch));
}

void Lane::extend_deadlines(Duration late, Time now) {
  const auto extend = [&](Time& since) { since = std::min(since + late, now); };
  extend(last_received_);
  extend(answer_since_);
  if (without_slab_) extend(without_slab_->since);
}

void Lane::leave(Time until) {
  if (!keeps_until_) keeps_until_ = until;
}

bool Lane::release(Time now) {
  if (released_ || !keeps_until_ || now < *keeps_until_) return false;
  return released_ = true;
}

Time Lane::due(const LaneTimeouts& timeouts) const {
  const Time due = std::min(batch_deadline(), lost_at(timeouts));
  return keeps_until_ && !released_ ? std::min(due, *keeps_until_) : due;
}

Time Lane::lost_at(const LaneTimeouts& timeouts) const {
  const Time silent = last_received_ + timeouts.silence;
  // The worker returned all its batches, but its device does not finish with their slabs.
  if (held_.empty() && without_slab_)
    return std::min(silent, without_slab_->since + timeouts.answer);
  if (held_.empty()) return silent;
  return std::min(silent, answer_since_ + answer_wait(timeouts));
}

std::string Lane::why_lost(const LaneTimeouts& timeouts, Time now) const {
  if (last_received_ + timeouts.silence <= now)
    return "no heartbeat for " + in_words(timeouts.silence);
  if (held_.empty())
    return "its device did not finish with a batch within " + in_words(timeouts.answer);
  return "batch " + std::to_string(number(held_.front().id)) + " was not answered within " +
         in_words(answer_wait(timeouts));
}

}  // namespace millrace
