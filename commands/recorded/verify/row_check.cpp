// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/verify/row_check.h"

#include <optional>
#include <variant>

#include "commands/recorded/recorded_rule.h"
#include "cutting/cutter.h"
#include "recording/format/row_digest.h"
#include "recording/reader/stream_reader.h"

namespace millrace::recordings {
namespace {

using recording::RecordedEvent;
using recording::StreamTotals;

// The stream, read and cut again.
struct CutAgain {
  StreamTotals totals{};  // as found now
  std::optional<StreamTotals> recorded{};
  bool missing = false;
  bool invalid = false;
};

void add(const RecordedEvent& read, Cutter& cutter, recording::RowDigest& digest, CutAgain& to) {
  to.invalid = to.invalid || !cutter.allows(read.event);
  if (to.invalid) return;
  cutter.add(read.event);
  if (read.event.kind == Event::Kind::frames) to.totals.frames += read.event.count;
  if (read.event.kind == Event::Kind::gap) to.totals.lost += read.event.count;
  while (const auto row = cutter.next()) digest.add(*row);
}

CutAgain cut_again(recording::Recordings& recordings, const recording::RecordedStream& stream,
                   Cutter& cutter) {
  CutAgain result;
  recording::StreamReader reader(recordings, stream);
  recording::RowDigest digest;
  while (const auto item = reader.next()) {
    if (const auto* read = std::get_if<RecordedEvent>(&*item))
      add(*read, cutter, digest, result);
    else if (const auto* totals = std::get_if<StreamTotals>(&*item))
      result.recorded = *totals;
  }
  result.totals.rows = digest.rows();
  result.totals.digest = digest.value();
  result.missing = !reader.missing().empty();
  return result;
}

// The error is empty if the rows are those of the live stream.
std::string compare(const CutAgain& cut) {
  if (cut.invalid) return "a size event has a size that the rule does not allow";
  if (cut.missing) return "a part of the stream is missing, but the stream is listed as whole";
  if (!cut.recorded) return "the stream has no totals, but it is listed as whole";
  const StreamTotals& was = *cut.recorded;
  const StreamTotals& is = cut.totals;
  const auto differs = [](const char* what, std::uint64_t now, std::uint64_t then) {
    return std::to_string(now) + what + ", but the service cut " + std::to_string(then);
  };
  if (is.frames != was.frames) return differs(" frames", is.frames, was.frames);
  if (is.lost != was.lost) return differs(" lost frames", is.lost, was.lost);
  if (is.rows != was.rows) return differs(" rows", is.rows, was.rows);
  if (is.digest != was.digest) return "the rows are not those that the service cut";
  return {};
}

}  // namespace

std::uint64_t check_rows(recording::Recordings& recordings, Problems& problems,
                         const std::function<void(std::uint64_t)>& cut) {
  std::uint64_t count = 0;
  for (const recording::RecordedStream& stream : recordings.streams()) {
    if (!stream.whole) continue;
    const auto rule = recorded_rule(stream);
    if (!rule) {
      problems.add(stream.first_file, stream.meta.number, 0, rule.error());
      continue;
    }
    Cutter cutter(*rule);
    const CutAgain again = cut_again(recordings, stream, cutter);
    if (const std::string error = compare(again); !error.empty())
      problems.add(stream.last_file, stream.meta.number, cutter.position(), error);
    cut(++count);
  }
  return count;
}

}  // namespace millrace::recordings
