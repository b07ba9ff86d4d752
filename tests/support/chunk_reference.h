// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/event.h"
#include "chunker/row.h"
#include "chunker/spec.h"

namespace millrace {

// A literal translation of tests/conformance/chunk_reference.py, the executable contract, for tests
// that call it more often than Python can answer. It uses only the types of the chunker.
class ReferenceChunker {
 public:
  // A row: seq, begin, left, size, right, flags, gap.
  using Columns = std::array<std::uint64_t, 7>;

  explicit ReferenceChunker(const Spec& spec) : spec_(spec), size_(spec.size) {}

  // Requires: the stream has not ended. Memory grows with the rows.
  void event(const Event& event) {
    switch (event.kind) {
      case Event::Kind::open:
        if (event.opened_anew()) open(event.count, event.rows);
        break;
      case Event::Kind::message:
      case Event::Kind::set:
        messages_.push_back({origin_ + received_, before_ + rows_.size()});
        break;
      case Event::Kind::frames: frames(event.count); break;
      case Event::Kind::size:
        size_ = event.count;
        frames(0);
        break;
      case Event::Kind::end: close(flag::last | flag::end); break;
      case Event::Kind::abort:
        emit(received_, 0, 0);
        rows_.back()[5] |= flag::last | flag::end | flag::abort;
        break;
      case Event::Kind::flush:
      case Event::Kind::reset:
      case Event::Kind::gap: cut(event); break;
    }
  }

  // Position of each message, and the number of the row that carries it.
  using Message = std::array<std::uint64_t, 2>;
  const std::vector<Message>& messages() const { return messages_; }

  // All rows so far.
  const std::vector<Columns>& rows() const { return rows_; }

 private:
  bool first_of_run() const { return cut_ == 0 && origin_ == run_; }

  // Length of the next body if nothing cuts it.
  std::uint64_t full() const {
    return first_of_run() ? (spec_.first > 0 ? spec_.first : size_) : size_;
  }

  void advance(std::uint64_t body) {
    const std::uint64_t step = spec_.step > 0 ? spec_.step : size_;
    covered_ = std::max(covered_, start_ + body);
    start_ += first_of_run() ? full() + step - size_ : step;
    cut_ += 1;
  }

  void emit(std::uint64_t start, std::uint64_t body, std::uint64_t right) {
    const std::uint64_t begin = origin_ + start;
    const std::uint64_t left = body > 0 ? std::min<std::uint64_t>(spec_.left, begin - run_) : 0;
    rows_.push_back({before_ + rows_.size(), begin, left, body, right, marks_, gap_});
    marks_ = body > 0 ? 0 : marks_ & flag::reset;
    gap_ = 0;
  }

  void open(std::uint64_t position, std::uint64_t rows) {
    origin_ = run_ = position;
    before_ = rows;
    marks_ = flag::reset | flag::segment;
  }

  void frames(std::uint64_t n) {
    received_ += n;
    while (start_ + full() + spec_.right <= received_) {
      const std::uint64_t body = full();
      emit(start_, body, spec_.right);
      advance(body);
    }
  }

  void close(std::uint64_t flags) {
    const std::size_t emitted = rows_.size();
    while (start_ < received_ && !(spec_.tail == Spec::Tail::cover && covered_ >= received_)) {
      const std::uint64_t body = std::min(full(), received_ - start_);
      const bool is_cut = body < full();
      if (is_cut && spec_.tail == Spec::Tail::drop) break;
      if (!(is_cut && cut_ > 0 && body < spec_.min))
        emit(start_, body, std::min<std::uint64_t>(spec_.right, received_ - start_ - body));
      advance(body);
    }
    if (rows_.size() == emitted) emit(received_, 0, 0);
    rows_.back()[5] |= flags;
  }

  void cut(const Event& event) {
    const bool gap = event.kind == Event::Kind::gap;
    if (!gap || received_ > 0) close(flag::last);
    origin_ += received_ + (gap ? event.count : 0);
    received_ = covered_ = start_ = cut_ = 0;
    marks_ |= flag::segment;
    if (event.kind != Event::Kind::flush) {
      run_ = origin_;
      marks_ |= flag::reset;
    }
    if (gap) {
      marks_ |= flag::gap;
      gap_ += event.count;
    }
  }

  Spec spec_;
  std::uint64_t size_;
  std::vector<Columns> rows_;
  std::uint64_t before_ = 0;  // rows of the stream before its open
  std::vector<Message> messages_;
  std::uint64_t origin_ = 0, run_ = 0;  // begin of the segment and of the run in the stream
  std::uint64_t received_ = 0,
                covered_ = 0;          // in the segment: frames received, end of the last body
  std::uint64_t start_ = 0, cut_ = 0;  // in the segment: begin of the next body, bodies cut
  std::uint64_t marks_ = flag::start | flag::reset | flag::segment, gap_ = 0;
};

}  // namespace millrace
