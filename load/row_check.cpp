// SPDX-License-Identifier: Apache-2.0
#include "load/row_check.h"

#include <algorithm>

#include "chunker/row.h"

namespace millrace::load {

namespace {

// Where the body behind that of a row begins, in the same segment.
std::uint64_t next_begin(const Spec& spec, const worker_protocol::RowEntry& row) {
  return row.begin + spec.advance(row.flags & flag::reset, spec.size);
}

// The most frames at the end of a segment that the rule begins no row for.
std::uint64_t most_left_out(const Spec& spec) {
  if (spec.tail == Spec::Tail::drop) return std::max(spec.size, spec.first) - 1;
  const bool overlap = spec.step > 0 && spec.step < spec.size;
  const std::uint32_t covered =
      spec.tail == Spec::Tail::cover && overlap ? spec.size - spec.step : 0;
  return std::max(spec.min > 0 ? spec.min - 1 : 0, covered);
}

}  // namespace

RowCheck::RowCheck(const RunFacts& run, const ChunkRule& rule, const FrameType& type)
    : run_(run), rule_(rule), type_(type), outcome_(run.schedule) {}

void RowCheck::open(StreamId stream, std::string_view name) {
  const auto begin = place_of(run_.name, name);
  if (!begin || begin->place >= run_.schedule.plan().streams) return;
  if (streams_.insert({stream, {*begin}}).second) ++outcome_.unended;
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
  if (!is_as_sent(known.begin, row, values)) ++outcome_.damaged;
  const std::uint64_t end = row.begin + row.size + row.right;
  const bool last = row.flags & flag::last;
  pass(known, row, last ? end : next_begin(rule_.spec, row));
  // What an end cuts is due when that comes, not when its frames are.
  if (!last) time(known, end, taken);
}

void RowCheck::look_at_mark(const worker_protocol::RowEntry& row, Time taken) {
  const auto found = streams_.find(row.stream);
  if (found == streams_.end()) return;
  Known& known = found->second;
  if (known.over || row.seq < known.seq) {
    ++outcome_.repeated;
    return;
  }
  outcome_.shed += row.gap;
  if (row.flags & flag::abort) {
    outcome_.aborts[known.begin] = taken;
  } else {
    const std::uint64_t sent = row.begin - std::min(row.gap, row.begin);
    const std::uint64_t missing = sent - std::min(sent, known.expected);
    outcome_.lost += missing - std::min(missing, most_left_out(rule_.spec));
  }
  pass(known, row, row.begin);
}

// The row is accounted for, and the next begins there.
void RowCheck::pass(Known& known, const worker_protocol::RowEntry& row, std::uint64_t expected) {
  known.expected = expected;
  known.seq = row.seq + 1;
  if (!(row.flags & (flag::end | flag::abort))) return;
  known.over = true;
  --outcome_.unended;
  if (row.flags & flag::abort) return;
  ++outcome_.ended;
  outcome_.frames_ended += expected;
}

bool RowCheck::is_as_sent(const StreamPlace& stream, const worker_protocol::RowEntry& row,
                          Bytes values) const {
  const std::size_t lead = rule_.columns().lead(row.left);
  const std::size_t window = std::size_t{row.left} + row.size + row.right;
  if ((lead + window) * type_.bytes() > values.size()) return false;
  return run_.content.matches(stream.place, stream.first, row.begin - row.left,
                              values.subspan(lead * type_.bytes(), window * type_.bytes()),
                              type_.element);
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
  const Time due = run_.schedule.due(0, packet);
  if (!run_.schedule.counts(due)) return;
  Duration& burst = outcome_.bursts[packet];
  burst = std::max(burst, taken - due);
}

}  // namespace millrace::load
