// SPDX-License-Identifier: Apache-2.0
#include "checking/plan/together.h"

#include <algorithm>
#include <iterator>

#include "chunker/row_layout.h"

namespace millrace::checking {
namespace {

constexpr std::uint32_t spare_slots = 2;

}  // namespace

std::uint32_t tensor_rows(const BatchRule& rule, std::uint32_t framed, bool padding, Draws& draws) {
  const std::uint32_t least = padded_length(rule.row_buckets, framed);
  if (!padding || least >= rule.rows) return least;
  const auto more = static_cast<std::uint32_t>(draws.between(least + 1, rule.rows));
  return padded_length(rule.row_buckets, more);
}

// Few slots more than a full batch needs, so that each is used by several streams. Among them is
// the last one: it is beside the line of padding rows.
Together::Together(std::span<const CheckedStream> streams, const BatchRule& rule,
                   bool moves_and_padding, std::uint64_t& next_id, Draws& draws)
    : streams_(streams),
      rule_(rule),
      moves_and_padding_(moves_and_padding),
      next_id_(next_id),
      draws_(draws) {
  const std::size_t most = std::min(rule.rows + spare_slots, rule.slots);
  const auto copies = static_cast<std::uint32_t>((2 * most + streams.size() - 1) / streams.size());
  for (std::uint32_t copy = copies; copy-- > 0;) {  // the last one begins first
    std::vector<Waiting> all;
    for (std::uint32_t stream = 0; stream < streams.size(); ++stream) all.push_back({stream, copy});
    draws_.shuffle(all);
    waiting_.insert(waiting_.end(), all.begin(), all.end());
  }
  for (auto& slots : free_) {
    slots.insert(rule.slots - 1);
    for (std::uint32_t slot = 0; slots.size() < most; ++slot) slots.insert(slot);
  }
}

// A third of the batches are as full as they can be.
std::vector<PlannedBatch> Together::batches() {
  std::vector<PlannedBatch> batches;
  while (!waiting_.empty() || !active_.empty()) {
    admit();
    const std::uint32_t worker = active_[draws_.number(active_.size())].worker;
    const bool full = draws_.one_in(3);
    while (full && !waiting_.empty() && admit_at(worker)) {
    }
    PlannedBatch batch = batch_of(worker, full ? rule_.rows : draws_.between(1, rule_.rows));
    if (!batch.framed.empty() || !batch.marks.empty()) batches.push_back(std::move(batch));
  }
  return batches;
}

// Streams begin one after the other, so that they are at different rows.
void Together::admit() {
  while (!waiting_.empty() && (active_.size() < 2 || draws_.one_in(2))) {
    const auto worker = static_cast<std::uint32_t>(moves_and_padding_ ? draws_.number(2) : 0);
    if (!admit_at(worker) && !active_.empty()) return;  // without one, the other worker has slots
  }
}

bool Together::admit_at(std::uint32_t worker) {
  const auto slot = take_slot(worker);
  if (!slot) return false;
  const auto [stream, copy] = waiting_.back();
  active_.push_back({.stream = stream,
                     .worker = worker,
                     .slot = *slot,
                     .id = StreamId{next_id_++},
                     .copy = copy});
  waiting_.pop_back();
  return true;
}

std::optional<std::uint32_t> Together::take_slot(std::uint32_t worker) {
  auto& slots = free_[worker];
  if (slots.empty()) return std::nullopt;
  const auto chosen = std::next(slots.begin(), static_cast<long>(draws_.number(slots.size())));
  return slots.extract(chosen).value();
}

PlannedBatch Together::batch_of(std::uint32_t worker, std::uint64_t most) {
  PlannedBatch batch{.worker = worker};
  draws_.shuffle(active_);
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
    into.push_back(
        {stream.stream, stream.row++, stream.slot, stream.id, stream.opens, stream.copy});
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
  stream.id = StreamId{next_id_++};
  stream.opens = stream.moved = true;
  return true;
}

}  // namespace millrace::checking
