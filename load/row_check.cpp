// SPDX-License-Identifier: Apache-2.0
#include "load/row_check.h"

#include <algorithm>
#include <utility>

#include "chunker/row.h"

namespace millrace::load {

RowCheck::RowCheck(const RunFacts& run, std::uint32_t width, Element dtype)
    : run_(run), width_(width), dtype_(dtype), outcome_(run.schedule) {}

void RowCheck::open(StreamId stream, std::string_view name) {
  const auto begin = place_of(run_.name, name);
  if (begin && begin->place < run_.schedule.plan().streams) streams_[stream] = {*begin};
}

void RowCheck::look_at(const worker_protocol::RowEntry& row, Bytes values, Time taken) {
  const auto found = streams_.find(row.stream);
  if (found == streams_.end()) {
    ++outcome_.unknown;
    return;
  }
  Known& known = found->second;
  ++outcome_.framed;
  if (known.over || row.begin < known.expected) {
    ++outcome_.repeated;
    return;
  }
  const std::uint64_t missing = row.begin - known.expected;
  outcome_.shed += row.gap;
  outcome_.lost += missing - std::min(row.gap, missing);
  known.expected = row.begin + row.size;
  const std::uint64_t begin = row.begin - row.left, end = known.expected + row.right;
  // A narrower one lies somewhere in its row, where the pipeline's rule wants it.
  if (end - begin == width_ &&
      !run_.content.matches(known.begin.place, known.begin.first, begin, values, dtype_))
    ++outcome_.damaged;
  // What an end cuts is due when that comes, not when its frames are.
  if (!(row.flags & flag::last)) time(known, end, taken);
  if (row.flags & flag::end) {
    outcome_.frames_ended += known.expected;
    known.over = true;
  }
}

void RowCheck::look_at_mark(const worker_protocol::RowEntry& row, Time taken) {
  const auto found = streams_.find(row.stream);
  if (found == streams_.end() || !(row.flags & (flag::end | flag::abort))) return;
  Known& known = found->second;
  if (std::exchange(known.over, true)) {
    ++outcome_.repeated;
  } else if (row.flags & flag::abort) {
    const Vanishing& vanishing = run_.vanishings[known.begin.place];
    const Time at = from_wire(vanishing.at);
    if (vanishing.first == known.begin.first && run_.schedule.counts(at))
      outcome_.vanished.add(taken - at);
  } else {
    outcome_.frames_ended += known.expected;
  }
}

void RowCheck::answer(const worker_protocol::RowEntry& row, std::string& out) const {
  const auto found = streams_.find(row.stream);
  if (found == streams_.end())
    out = "null";
  else
    write_answer(out, found->second.begin, row.begin);
}

void RowCheck::time(const Known& known, std::uint64_t end, Time taken) {
  const std::uint64_t packet = known.begin.first + (end - 1) / run_.content.packet_frames();
  outcome_.rows.add(run_.schedule.due(known.begin.place, packet), taken);
  if (run_.schedule.plan().phase == Phase::step) note_burst(packet, taken);
}

void RowCheck::note_burst(std::uint64_t packet, Time taken) {
  if (packet > burst_.packet) {
    if (run_.schedule.counts(burst_.due)) outcome_.bursts.add(burst_.last - burst_.due);
    burst_ = {.packet = packet, .due = run_.schedule.due(0, packet), .last = taken};
  }
  if (packet == burst_.packet) burst_.last = taken;
}

}  // namespace millrace::load
