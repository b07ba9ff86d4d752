// SPDX-License-Identifier: Apache-2.0
#include "load/row_check.h"

#include <algorithm>
#include <string>
#include <utility>

#include "chunker/row.h"
#include "chunker/row_arithmetic.h"

namespace millrace::load {

namespace {

// Position of the body after that of `row` in the same segment.
std::uint64_t next_begin(const ChunkRule& rule, const worker_protocol::RowEntry& row) {
  if (!rule.sizes.sizes.empty()) return row.begin + row.size;
  return row.begin + rule.spec.advance(row.flags & flag::reset, rule.spec.size);
}

// The longest body; the first one of a run may be longer.
std::uint64_t longest_body(const ChunkRule& rule, bool may_be_first) {
  const std::uint32_t size = rule.sizes.sizes.empty() ? rule.spec.size : rule.sizes.sizes.largest();
  return may_be_first ? std::max(size, rule.first_body(size)) : size;
}

// True if the body may be as long as this one. With sizes, it has one of them, unless it is the
// first of a run or is cut at the end of its segment. Without sizes, the positions of rows show it.
bool is_possible_size(const ChunkRule& rule, const worker_protocol::RowEntry& row) {
  const SizeList& sizes = rule.sizes.sizes;
  if (sizes.empty() || sizes.contains(row.size)) return true;
  const bool may_be_first = row.flags & flag::reset;
  if (row.flags & flag::last) return row.size <= longest_body(rule, may_be_first);
  return may_be_first && sizes.contains(row.size - rule.first_longer());
}

// The string in the JSON that begins with the name of the run; empty: no string does.
std::string_view name_in(std::string_view options, std::string_view run) {
  const auto begin = options.find('"' + std::string(run) + '-');
  if (begin == options.npos) return {};
  options.remove_prefix(begin + 1);
  return options.substr(0, options.find('"'));
}

}  // namespace

RowCheck::RowCheck(const RunFacts& run, const ChunkRule& rule, const FrameType& type)
    : run_(run), rule_(rule), type_(type), outcome_(run.schedule) {}

void RowCheck::open(StreamId stream, std::string_view name, std::string_view options) {
  auto id = parse_stream_name(run_.name, name);
  if (!id) id = parse_stream_name(run_.name, name_in(options, run_.name));
  if (!id || id->client >= run_.schedule.plan().streams) return;
  CheckedStream checked{.id = *id};
  const auto [newest, is_first] = newest_.try_emplace(*id, stream);
  if (!is_first) {
    checked = streams_.at(newest->second);
    checked.over = false;
    checked.anew = true;
  }
  if (!streams_.insert({stream, checked}).second) return;
  newest->second = stream;
  ++outcome_.unended;
}

void RowCheck::check(const worker_protocol::RowEntry& row, Bytes values, Time taken) {
  const auto found = streams_.find(row.stream);
  if (found == streams_.end()) {
    ++outcome_.unknown;
    return;
  }
  CheckedStream& stream = found->second;
  ++outcome_.framed;
  if (row.flags & flag::end) ++outcome_.closing;
  if (std::exchange(stream.anew, false)) stream.expected = std::min(stream.expected, row.begin);
  if (stream.over || row.begin < stream.expected) {
    ++outcome_.repeated;
    return;
  }
  const std::uint64_t missing = row.begin - stream.expected;
  outcome_.shed += row.gap;
  outcome_.lost += missing - std::min(row.gap, missing);
  if (!is_possible_size(rule_, row) || !is_as_sent(stream.id, row, values)) ++outcome_.damaged;
  const std::uint64_t end = row.begin + row.size + row.right;
  const bool last = row.flags & flag::last;
  accept(stream, row, last ? end : next_begin(rule_, row));
  // A last row is due when the end of its segment arrives, not when its frames do.
  if (!last) record_time(stream, end, taken);
}

void RowCheck::check_mark(const worker_protocol::RowEntry& row, Time taken) {
  const auto found = streams_.find(row.stream);
  if (found == streams_.end()) return;
  CheckedStream& stream = found->second;
  if (stream.over || row.seq < stream.seq) {
    ++outcome_.repeated;
    return;
  }
  outcome_.shed += row.gap;
  if (row.flags & flag::abort) {
    outcome_.aborts[stream.id] = taken;
  } else {
    const std::uint64_t sent = row.begin - std::min(row.gap, row.begin);
    const std::uint64_t missing = sent - std::min(sent, stream.expected);
    outcome_.lost += missing - std::min(missing, most_left_out(rule_));
  }
  accept(stream, row, row.begin);
}

// Records the row. The next one begins at `expected`.
void RowCheck::accept(CheckedStream& stream, const worker_protocol::RowEntry& row,
                      std::uint64_t expected) {
  stream.expected = expected;
  stream.seq = row.seq + 1;
  if (!(row.flags & (flag::end | flag::abort))) return;
  stream.over = true;
  --outcome_.unended;
  if (row.flags & flag::abort) return;
  ++outcome_.ended;
  outcome_.frames_ended += expected;
}

bool RowCheck::is_as_sent(const LoadStreamId& stream, const worker_protocol::RowEntry& row,
                          Bytes values) const {
  const std::size_t lead = rule_.columns().lead(row.left);
  const std::size_t window = std::size_t{row.left} + row.size + row.right;
  if ((lead + window) * type_.bytes() > values.size()) return false;
  return run_.content.matches(stream.client, stream.first, row.begin - row.left,
                              values.subspan(lead * type_.bytes(), window * type_.bytes()),
                              type_.element);
}

void RowCheck::answer(const worker_protocol::RowEntry& row, std::string& out) const {
  const auto found = streams_.find(row.stream);
  if (found == streams_.end())
    out = "null";
  else if (run_.transcribed)
    write_transcript(out, found->second.id, row.begin, row.begin + row.size);
  else
    write_answer(out, found->second.id, row.begin);
}

void RowCheck::record_time(const CheckedStream& stream, std::uint64_t end, Time taken) {
  const std::uint64_t packet = stream.id.first + (end - 1) / run_.content.packet_frames();
  outcome_.rows.add(run_.schedule.due(stream.id.client, packet), taken);
  if (run_.schedule.plan().phase == Phase::step) record_burst(packet, taken);
}

void RowCheck::record_burst(std::uint64_t packet, Time taken) {
  const Time due = run_.schedule.due(0, packet);
  if (!run_.schedule.counts(due)) return;
  Duration& burst = outcome_.bursts[packet];
  burst = std::max(burst, taken - due);
}

}  // namespace millrace::load
