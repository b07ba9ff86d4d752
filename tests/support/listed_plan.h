// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "chunker/chunker.h"
#include "training/contract/catalog.h"
#include "training/contract/plan.h"

namespace millrace::test {

// A stateful plan for tests of code that reads plans: it lists all batches of an epoch. Stream s
// has slot s % slots; the streams of a slot follow each other. All epochs are equal.
class ListedPlan final : public training::Plan {
 public:
  ListedPlan(const training::Catalog& catalog, std::uint32_t slots, const Spec& spec)
      : slots_(slots), spec_(spec) {
    std::vector<std::vector<training::PlannedBatch>> by_slot(slots);
    for (std::uint64_t stream = 0; stream < catalog.size(); ++stream)
      cut(catalog, stream, static_cast<std::uint32_t>(stream % slots), by_slot[stream % slots]);
    std::size_t steps = 0;
    for (const auto& column : by_slot) steps = std::max(steps, column.size());
    for (std::size_t step = 0; step < steps; ++step) {
      training::PlannedBatch batch{.step = step,
                                   .rows = slots,
                                   .width = spec.width(),
                                   .body = std::max(spec.size, spec.first),
                                   .framed = {},
                                   .marks = {}};
      for (const auto& column : by_slot)
        if (step < column.size()) {
          batch.framed.push_back(column[step].framed.front());
          for (const auto& mark : column[step].marks) batch.marks.push_back(mark);
        }
      batches_.push_back(std::move(batch));
    }
  }

  // Called by epoch(), on its thread.
  std::function<void(std::uint64_t)> on_epoch;
  // The same, with what epoch() has to call.
  std::function<void(const training::Poll&)> on_poll;
  // Called by cursor(), on its thread.
  std::function<void(std::uint64_t)> on_cursor;

  const std::vector<training::PlannedBatch>& batches() const { return batches_; }

  std::unique_ptr<training::EpochPlan> epoch(std::uint64_t epoch,
                                             const training::Poll& poll) const override {
    if (on_epoch) on_epoch(epoch);
    if (on_poll) on_poll(poll);
    return std::make_unique<Epoch>(*this, epoch);
  }
  std::uint32_t slots(training::Rank rank) const override { return slots_ / rank.world; }
  std::uint32_t most_rows(training::Rank rank) const override { return slots_ / rank.world; }
  std::uint32_t most_columns() const override { return spec_.width(); }
  std::uint32_t most_body() const override { return std::max(spec_.size, spec_.first); }

 private:
  // The rows of the stream, after those of its slot: a batch per row with frames.
  static void add(const training::InnerEvent& event, Chunker& chunker, std::uint64_t stream,
                  std::uint32_t slot, std::uint64_t& lost,
                  std::vector<training::PlannedBatch>& into, bool& opens) {
    chunker.add(event.event);
    while (const auto row = chunker.next()) {
      training::PlannedRow planned{
          .stream = stream, .frame = row->begin - lost, .slot = slot, .row = *row};
      if (row->has_frames()) {
        planned.opens = std::exchange(opens, false);
        into.push_back({.framed = {planned}, .marks = {}});
      } else if (!into.empty()) {
        into.back().marks.push_back(planned);
      }
    }
    if (event.event.kind == Event::Kind::gap) lost += event.event.count;
  }

  void cut(const training::Catalog& catalog, std::uint64_t stream, std::uint32_t slot,
           std::vector<training::PlannedBatch>& into) const {
    Chunker chunker(spec_);
    std::uint64_t frame = 0, lost = 0;
    bool opens = true;
    const auto frames = [&](std::uint64_t to) {
      if (to > frame)
        add({{.kind = Event::Kind::frames, .count = to - frame}}, chunker, stream, slot, lost, into,
            opens);
      frame = to;
    };
    add({{.kind = Event::Kind::open}}, chunker, stream, slot, lost, into, opens);
    for (const auto& event : catalog.events(stream)) {
      frames(event.frame);
      add(event, chunker, stream, slot, lost, into, opens);
    }
    frames(catalog.frames(stream));
    add({{.kind = Event::Kind::end}}, chunker, stream, slot, lost, into, opens);
  }

  class Cursor final : public training::PlanCursor {
   public:
    Cursor(const ListedPlan& plan, std::uint64_t epoch, training::Rank rank, std::uint64_t step,
           std::uint64_t stride)
        : plan_(plan), epoch_(epoch), rank_(rank), step_(step), stride_(stride) {}
    bool next(training::PlannedBatch& into) override {
      if (step_ >= plan_.batches_.size()) return false;
      into = plan_.batches_[step_];
      into.epoch = epoch_;
      into.rows /= rank_.world;
      for (auto* rows : {&into.framed, &into.marks}) {
        std::erase_if(*rows, [&](const auto& row) { return row.slot / into.rows != rank_.rank; });
        for (auto& row : *rows) row.slot %= into.rows;
      }
      step_ += stride_;
      return true;
    }

   private:
    const ListedPlan& plan_;
    const std::uint64_t epoch_;
    const training::Rank rank_;
    std::uint64_t step_;
    const std::uint64_t stride_;
  };

  class Epoch final : public training::EpochPlan {
   public:
    Epoch(const ListedPlan& plan, std::uint64_t epoch) : plan_(plan), epoch_(epoch) {}
    std::uint64_t steps() const override { return plan_.batches_.size(); }
    training::PlanTotals totals() const override {
      training::PlanTotals totals;
      for (const auto& batch : plan_.batches_) {
        totals.rows += batch.framed.size();
        totals.padding_rows += batch.rows - batch.framed.size();
        for (const auto& row : batch.framed) totals.frames += row.row.size;
      }
      return totals;
    }
    std::unique_ptr<training::PlanCursor> cursor(training::Rank rank, std::uint64_t step,
                                                 std::uint64_t stride) const override {
      if (plan_.on_cursor) plan_.on_cursor(epoch_);
      return std::make_unique<Cursor>(plan_, epoch_, rank, step, stride);
    }

   private:
    const ListedPlan& plan_;
    const std::uint64_t epoch_;
  };

  const std::uint32_t slots_;
  const Spec spec_;
  std::vector<training::PlannedBatch> batches_;
};

}  // namespace millrace::test
