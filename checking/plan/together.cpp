// SPDX-License-Identifier: Apache-2.0
#include "checking/plan/together.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "chunker/row_layout.h"

namespace millrace::checking {

std::uint32_t tensor_rows(const BatchRule& rule, std::uint32_t framed, bool padding, Draws& draws) {
  const std::uint32_t least = padded_length(rule.row_buckets, framed);
  if (!padding || least >= rule.rows) return least;
  const auto more = static_cast<std::uint32_t>(draws.between(least + 1, rule.rows));
  return padded_length(rule.row_buckets, more);
}

// Few slots, so that each is used by several streams. Among them is the last one: it is beside the
// line of padding rows.
Together::Together(std::span<const CheckedStream> streams, const BatchRule& rule,
                   bool moves_and_padding, std::uint64_t& next_id, Draws& draws)
    : streams_(streams),
      rule_(rule),
      moves_and_padding_(moves_and_padding),
      next_id_(next_id),
      draws_(draws),
      waiting_(streams.size()) {
  std::iota(waiting_.begin(), waiting_.end(), 0);
  draws_.shuffle(waiting_);
  const auto most = std::max<std::size_t>(2, std::min<std::size_t>(rule.rows, streams.size() / 2));
  for (auto& slots : free_) {
    slots.insert(rule.slots - 1);
    for (std::uint32_t slot = 0; slots.size() < most && slot < rule.slots; ++slot)
      slots.insert(slot);
  }
}

std::vector<PlannedBatch> Together::batches() {
  std::vector<PlannedBatch> batches;
  while (!waiting_.empty() || !active_.empty()) {
    admit();
    const std::uint32_t worker = active_[draws_.number(active_.size())].worker;
    PlannedBatch batch = batch_of(worker);
    if (!batch.framed.empty() || !batch.marks.empty()) batches.push_back(std::move(batch));
  }
  return batches;
}

// Streams begin one after the other, so that they are at different rows.
void Together::admit() {
  while (!waiting_.empty() && (active_.size() < 2 || draws_.one_in(2))) {
    const auto worker = static_cast<std::uint32_t>(moves_and_padding_ ? draws_.number(2) : 0);
    const auto slot = take_slot(worker);
    if (!slot && active_.empty()) continue;  // the other worker has one
    if (!slot) return;
    active_.push_back(
        {.stream = waiting_.back(), .worker = worker, .slot = *slot, .id = StreamId{next_id_++}});
    waiting_.pop_back();
  }
}

std::optional<std::uint32_t> Together::take_slot(std::uint32_t worker) {
  auto& slots = free_[worker];
  if (slots.empty()) return std::nullopt;
  const auto chosen = std::next(slots.begin(), static_cast<long>(draws_.number(slots.size())));
  return slots.extract(chosen).value();
}

PlannedBatch Together::batch_of(std::uint32_t worker) {
  PlannedBatch batch{.worker = worker};
  draws_.shuffle(active_);
  const std::uint64_t most = draws_.one_in(3) ? rule_.rows : draws_.between(1, rule_.rows);
  for (Active& stream : active_) {
    if (stream.worker != worker || batch.framed.size() >= most) continue;
    if (!move(stream)) take(stream, batch);
  }
  std::erase_if(active_, [&](const Active& stream) {
    return stream.row == streams_[stream.stream].rows().size();
  });
  if (!batch.framed.empty())
    batch.rows = tensor_rows(rule_, static_cast<std::uint32_t>(batch.framed.size()),
                             moves_and_padding_ && !draws_.one_in(4), draws_);
  return batch;
}

// A service hands rows to the other worker when those before them are done, and uses a slot again
// when the stream that had it is gone: the batch waits for that.
void Together::take(Active& stream, PlannedBatch& batch) {
  const std::size_t rows = streams_[stream.stream].rows().size();
  const auto add = [&](std::vector<PlannedRow>& into) {
    into.push_back({stream.stream, stream.row++, stream.slot, stream.id, stream.opens});
    batch.alone |= std::exchange(stream.opens, false);
    stream.moved = false;
  };
  if (next_of(stream).row.has_frames()) add(batch.framed);
  while (stream.row < rows && !next_of(stream).row.has_frames() &&
         batch.marks.size() < rule_.slots && !draws_.one_in(4))
    add(batch.marks);
  if (stream.row == rows) free_[stream.worker].insert(stream.slot);
}

bool Together::move(Active& stream) {
  const CheckedRow& next = next_of(stream);
  if (!moves_and_padding_ || stream.moved || !next.begins_run ||
      next.row.reason != ResetReason::worker_lost)
    return false;
  const std::uint32_t to = 1 - stream.worker;
  const auto slot = take_slot(to);
  if (!slot) return false;
  free_[stream.worker].insert(stream.slot);
  stream.worker = to;
  stream.slot = *slot;
  stream.opens = stream.moved = true;
  return true;
}

}  // namespace millrace::checking
