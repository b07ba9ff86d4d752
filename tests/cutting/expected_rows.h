// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/event.h"
#include "chunker/spec.h"
#include "input/endpoint_rule.h"
#include "tests/support/chunk_reference.h"

namespace millrace::test {

// The rows that a stream must have. It has no code in common with the cutter: the reference chunker
// cuts the rows, frames enter it one at a time, and each decision follows from its definition. The
// test reports the sizes that depend on the load.
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
        reference_(chunk.chunker_spec()),
        in_force_(chunk.spec.size) {}

  // The next event of the client.
  void add(const Event& event) {
    const bool frames = event.kind == Kind::frames;
    for (std::uint64_t left = frames ? event.count : 1; left > 0; --left) {
      while (const std::uint32_t body = changed_body()) enter({.kind = Kind::size, .count = body});
      Event next = event;
      if (frames) next.count = 1;
      enter(next);
      end_segments();
    }
  }

  // An answer ends the segment of the row with this number.
  void on_worker_endpoint(std::uint64_t seq) {
    const bool by_worker = endpoint_ && endpoint_->by == EndpointRule::By::worker;
    by_worker && !has_ended(seq) ? end_segment() : void(++late_);
  }

  const std::vector<ReferenceChunker::Columns>& rows() const { return reference_.rows(); }
  const std::vector<ReferenceChunker::Message>& messages() const { return reference_.messages(); }
  std::uint64_t endpoints() const { return endpoints_; }  // that took effect
  std::uint64_t late() const { return late_; }            // endpoints of workers without effect

 private:
  using Kind = Event::Kind;

  bool has_ended(std::uint64_t seq) const { return last_row_ && seq <= *last_row_; }

  void end_segments() {
    if (endpoint_ && frames_ == endpoint_->max) end_segment();
  }

  void end_segment() {
    ++endpoints_;
    const bool resets = endpoint_->on_endpoint == EndpointRule::On::reset;
    enter({.kind = resets ? Kind::reset : Kind::flush, .cause = Cause::endpoint});
  }

  // The next body, if the chunker has to get it; otherwise 0.
  std::uint32_t changed_body() const {
    const Spec& spec = chunk_.spec;
    if (chunk_.sizes.sizes.empty()) return 0;
    std::uint32_t body = size_of_(bodies_, seen_);
    if (first_of_run_ && spec.first > 0) body = body + spec.first - spec.size;
    return body == in_force_ ? 0 : body;
  }

  void enter(const Event& event) {
    reference_.event(event);
    const std::uint64_t before = seen_;
    for (; seen_ < rows().size(); ++seen_) {
      if (rows()[seen_][3] > 0) ++bodies_;
      if ((rows()[seen_][5] & flag::last) > 0) last_row_ = rows()[seen_][0];
    }
    switch (event.kind) {
      case Kind::open:
      case Kind::message:
      case Kind::set: break;
      case Kind::size:
        in_force_ = static_cast<std::uint32_t>(event.count);
        if (seen_ > before) first_of_run_ = false;
        break;
      case Kind::frames:
        ++frames_;
        if (seen_ > before) first_of_run_ = false;
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

  std::uint32_t in_force_;    // size of bodies in the chunker
  std::uint64_t frames_ = 0;  // of the segment
  bool first_of_run_ = true;  // the next body
  std::uint64_t bodies_ = 0;  // rows with frames
  std::uint64_t seen_ = 0;    // rows
  std::uint64_t endpoints_ = 0, late_ = 0;
  std::optional<std::uint64_t> last_row_;  // number of the last LAST row
};

}  // namespace millrace::test
