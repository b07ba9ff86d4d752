// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "base/event.h"
#include "chunker/ready_row.h"
#include "chunker/spec.h"
#include "input/endpoint_rule.h"
#include "tests/support/chunk_reference.h"

namespace millrace::test {

// The rows that a stream must give to its lane, and when. It has no code in common with the stream:
// the reference chunker cuts the rows, frames enter it one at a time, and each event of a source
// follows from its definition. Two things cannot be known from outside, so the test reports them:
// the number of frames that were shed, and the sizes that depend on the load.
class ExpectedRows {
 public:
  // The size of the next body, the difference of the first body of a run not counted. `bodies` and
  // `rows` are the numbers of rows before it with frames, and of all rows before it.
  using SizeOf = std::function<std::uint32_t(std::uint64_t bodies, std::uint64_t rows)>;

  // Both rules outlive it.
  ExpectedRows(const ChunkRule& chunk, const std::optional<EndpointRule>& endpoint, SizeOf size_of)
      : chunk_(chunk),
        endpoint_(endpoint),
        size_of_(std::move(size_of)),
        reference_(reference_spec(chunk)),
        in_force_(chunk.spec.size) {}

  // The client's next event, `abort` excepted, waits for the chunker.
  void add(const Event& event) { waiting_.push_back(event); }
  // The stream is aborted. If no worker has had a row, waiting events are dropped, and rows are not
  // bounded.
  void abort() {
    if (taken_ == 0) {
      is_bounded_ = false;
      waiting_.clear();
    }
    waiting_.push_back({.kind = Event::Kind::abort, .cause = Cause::connection});
  }
  // The oldest waiting frames were shed: a gap takes the place of each.
  void shed(std::uint64_t frames) {
    for (auto at = waiting_.begin(); frames > 0; ++at) {
      if (at->kind != Event::Kind::frames) continue;
      const std::uint64_t count = std::min(frames, at->count);
      frames -= count;
      at->count -= count;
      at = waiting_.insert(at, {.kind = Event::Kind::gap, .cause = Cause::load, .count = count});
      if (at[1].count == 0) waiting_.erase(at + 1);
    }
  }

  // The row with this number, and those before it, are in batches.
  void batched(std::uint64_t seq) { taken_ = std::max(taken_, seq + 1); }
  // The row is done. `ends`: its answer ends its segment.
  void done(std::uint64_t seq, bool ends) {
    batched(seq);
    if (!ends) return;
    const bool by_worker = endpoint_ && endpoint_->by == EndpointRule::By::worker;
    if (!by_worker || has_ended(seq) || worker_row_)
      ++late_;
    else
      worker_row_ = seq;
  }

  // Gives the lane all rows that it may have now. `held_up`: the results of a slow client keep all
  // rows from the lane.
  void give_rows(bool held_up) {
    while ((!held_up && given_ - taken_ < max_ready_rows) || !is_bounded_)
      if (!step()) return;
  }

  std::uint64_t given() const { return given_; }  // rows
  const ReferenceChunker::Columns& row(std::uint64_t seq) const { return reference_.rows()[seq]; }
  std::uint64_t endpoints() const { return endpoints_; }  // that took effect
  std::uint64_t late() const { return late_; }            // endpoints of workers without effect

 private:
  using Kind = Event::Kind;

  // With sizes, size events make the difference of the first body.
  static Spec reference_spec(const ChunkRule& chunk) {
    Spec spec = chunk.spec;
    if (!chunk.sizes.sizes.empty()) spec.first = 0;
    return spec;
  }

  // Gives a row, or lets one event enter the chunker; false if there is none.
  bool step() {
    if (given_ < reference_.rows().size()) {
      give_row();
    } else if (is_endpoint_due()) {
      const bool resets = endpoint_->on_endpoint == EndpointRule::On::reset;
      enter({.kind = resets ? Kind::reset : Kind::flush, .cause = Cause::endpoint});
    } else if (waiting_.empty()) {
      return false;
    } else if (const std::uint32_t body = next_body(); body != in_force_) {
      enter({.kind = Kind::size, .count = body});
    } else {
      enter(take());
    }
    return true;
  }

  void give_row() {
    const ReferenceChunker::Columns& given = row(given_);
    if (given[3] > 0) ++bodies_;
    if ((given[5] & flag::last) > 0) last_row_ = given_;
    ++given_;
  }

  bool has_ended(std::uint64_t seq) const { return last_row_ && seq <= *last_row_; }

  bool is_endpoint_due() {
    bool due = endpoint_ && frames_ == endpoint_->max;
    if (const auto row = std::exchange(worker_row_, std::nullopt)) {
      if (has_ended(*row))
        ++late_;
      else
        due = true;
    }
    if (due) ++endpoints_;
    return due;
  }

  std::uint32_t next_body() const {
    const Spec& spec = chunk_.spec;
    if (chunk_.sizes.sizes.empty()) return in_force_;
    const std::uint32_t size = size_of_(bodies_, given_);
    return first_of_run_ && spec.first > 0 ? size + spec.first - spec.size : size;
  }

  // The oldest waiting event; of a frames event one frame.
  Event take() {
    Event next = waiting_.front();
    if (next.kind == Kind::frames && next.count > 1) {
      --waiting_.front().count;
      next.count = 1;
    } else {
      waiting_.pop_front();
    }
    return next;
  }

  void enter(const Event& event) {
    reference_.event(event);
    switch (event.kind) {
      case Kind::open: break;
      case Kind::size: in_force_ = static_cast<std::uint32_t>(event.count); break;
      case Kind::frames:
        ++frames_;
        if (given_ < reference_.rows().size()) first_of_run_ = false;
        break;
      case Kind::flush:
        if (std::exchange(frames_, 0) > 0) first_of_run_ = false;
        break;
      case Kind::reset:
      case Kind::gap:
      case Kind::end:
      case Kind::abort:
        frames_ = 0;
        first_of_run_ = true;
        break;
    }
  }

  const ChunkRule& chunk_;
  const std::optional<EndpointRule>& endpoint_;
  const SizeOf size_of_;
  ReferenceChunker reference_;
  std::deque<Event> waiting_;

  std::uint32_t in_force_;    // size of bodies in the chunker
  std::uint64_t frames_ = 0;  // of the segment
  bool first_of_run_ = true;  // the next body
  std::uint64_t bodies_ = 0;  // rows with frames
  std::uint64_t given_ = 0;   // rows that the lane has
  std::uint64_t taken_ = 0;   // of these, rows that were in batches
  bool is_bounded_ = true;    // the number of rows that are in no batch
  std::uint64_t endpoints_ = 0, late_ = 0;
  std::optional<std::uint64_t> worker_row_;  // a worker ended the segment of this row
  std::optional<std::uint64_t> last_row_;    // number of the LAST row given last
};

}  // namespace millrace::test
