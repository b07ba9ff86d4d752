// SPDX-License-Identifier: Apache-2.0
#include "checking/plan/checked_stream.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "cutting/cutter.h"
#include "schemas/json_text.h"

namespace millrace::checking {
namespace {

using Kind = Event::Kind;

constexpr std::uint64_t most_gap = 1000;  // frames
constexpr std::size_t with_one_run = 4;   // each fourth stream

// Adds events, and keeps the rows that they yield.
class RowCollector {
 public:
  RowCollector(const ChunkRule& rule, const std::string& name, double rate,
               std::vector<CheckedRow>& into)
      : cutter_(rule, {.stream = name, .rate = rate}), into_(into) {}

  void add(const Event& event) {
    cutter_.add(event);
    while (const auto row = cutter_.next())
      into_.push_back({.row = *row, .frame = cutter_.index(row->begin)});
  }
  void add_frames(std::uint64_t count) {
    while (count > 0) {
      const std::uint64_t part =
          cutter_.decides() ? std::min(count, cutter_.frames_until_next()) : count;
      add({.kind = Kind::frames, .count = part});
      count -= part;
    }
  }

 private:
  Cutter cutter_;
  std::vector<CheckedRow>& into_;
};

// As the lanes mark the rows of a stream that lost its worker: up to the first row with frames.
void lose_worker(std::vector<CheckedRow>& rows, std::uint64_t at) {
  for (; at < rows.size(); ++at) {
    rows[at].row.flags |= flag::reset;
    rows[at].row.reason = ResetReason::worker_lost;
    if (rows[at].row.has_frames()) return;
  }
}

}  // namespace

CheckedStream::CheckedStream(StreamFrames frames, const FrameType& type, const ChunkRule& rule,
                             const Events& events, const std::vector<std::uint64_t>& moves)
    : frames_(std::move(frames)), frame_bytes_(type.bytes()) {
  RowCollector rows(rule, frames_.name, type.rate, rows_);
  rows.add({.kind = Kind::open});
  std::uint64_t fed = 0;
  for (const auto& [frame, event] : events) {
    rows.add_frames(frame - fed);
    rows.add(event);
    fed = frame;
  }
  if (events.empty() || events.back().second.kind != Kind::abort) {
    rows.add_frames(frames_.bytes.size() / frame_bytes_ - fed);
    rows.add({.kind = Kind::end});
  }
  for (const std::uint64_t at : moves) lose_worker(rows_, at);
  mark_runs();
}

Bytes CheckedStream::window(const CheckedRow& row) const {
  return Bytes(frames_.bytes)
      .subspan((row.frame - row.row.left) * frame_bytes_, row.row.window() * frame_bytes_);
}

// A marker row leaves no state: a RESET of it and of the row after it are one.
void CheckedStream::mark_runs() {
  bool fresh = false;
  for (CheckedRow& at : rows_) {
    at.begins_run = at.row.is(flag::reset) && !fresh;
    fresh = at.row.is(flag::reset) && !at.row.has_frames();
  }
  rows_.front().begins_run = true;
}

std::vector<std::uint32_t> CheckedStream::runs() const {
  std::vector<std::uint32_t> runs;
  for (std::uint32_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].begins_run) runs.push_back(i);
  return runs;
}

std::string CheckedStream::options_before(std::uint32_t row) const {
  std::vector<std::string_view> changes;
  for (std::uint32_t i = 0; i < row; ++i)
    for (const StreamPost& message : rows_[i].messages)
      if (message.set) changes.push_back(message.text);
  return changes.empty() ? frames_.options : merged_members(frames_.options, changes);
}

void CheckedStream::post(std::uint32_t row, StreamPost message) {
  rows_[row].messages.push_back(std::move(message));
}

CheckedStream::Events draw_events(std::uint64_t frames, bool one_run, Draws& draws) {
  std::vector<std::uint64_t> at(draws.number(5));
  for (std::uint64_t& frame : at) frame = draws.between(1, frames);
  std::ranges::sort(at);
  CheckedStream::Events events;
  for (const std::uint64_t frame : at) {
    Event event{.kind = Kind::flush};
    if (!one_run && draws.one_in(3))
      event = {.kind = Kind::gap, .count = draws.between(1, most_gap)};
    else if (!one_run && draws.one_in(2))
      event = {.kind = Kind::reset};
    else if (draws.one_in(2))
      event.mark = events.size();
    events.emplace_back(frame, event);
  }
  if (!one_run && draws.one_in(5)) events.emplace_back(frames, Event{.kind = Kind::abort});
  return events;
}

std::vector<CheckedStream> cut_streams(std::vector<StreamFrames> streams, const FrameType& type,
                                       const ChunkRule& rule, Draws& draws) {
  std::vector<CheckedStream> cut;
  for (StreamFrames& stream : streams) {
    if (cut.empty()) {
      cut.emplace_back(std::move(stream), type, rule, CheckedStream::Events(),
                       std::vector<std::uint64_t>());
      continue;
    }
    const bool one_run = cut.size() % with_one_run == 0;
    const auto events = draw_events(stream.bytes.size() / type.bytes(), one_run, draws);
    cut.emplace_back(stream, type, rule, events, std::vector<std::uint64_t>());
    const std::size_t rows = cut.back().rows().size();
    if (rows < 3 || one_run) continue;
    std::vector<std::uint64_t> moves(draws.between(1, 2));
    for (std::uint64_t& at : moves) at = draws.between(1, rows - 2);
    cut.back() = CheckedStream(std::move(stream), type, rule, events, moves);
  }
  return cut;
}

}  // namespace millrace::checking
