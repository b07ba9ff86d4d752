// SPDX-License-Identifier: Apache-2.0
#include "training/plans/rows/stream_cutter.h"

#include <cassert>

#include "chunker/chunker.h"

namespace millrace::training {
namespace {

using Way = StreamCutter::Way;

bool is_returnn(PlanMode mode) {
  return mode == PlanMode::returnn_classic || mode == PlanMode::returnn_torch;
}

// If the rule has sizes, the last rows may differ from those of a rule with one size: a size that
// the end of the stream finds in force stays in force.
Way way_of(const PlanOptions& options) {
  if (!options.chunk) return Way::whole;
  if (is_returnn(options.mode)) return Way::chunks;
  const ChunkRule& rule = *options.chunk;
  const bool one_size =
      rule.sizes.sizes.empty() || (rule.sizes.by != SizeRule::By::random && rule.spec.first == 0);
  return one_size ? Way::plain : Way::sized;
}

Row whole_stream(std::uint64_t frames) {
  Row row;
  row.size = static_cast<std::uint32_t>(frames);
  row.flags = flag::start | flag::reset | flag::segment | flag::last | flag::end;
  row.reason = ResetReason::start;
  return row;
}

}  // namespace

StreamCutter::StreamCutter(const Catalog& catalog, const PlanOptions& options, std::uint64_t epoch)
    : catalog_(catalog),
      rule_(options.chunk.value_or(ChunkRule{})),
      way_(way_of(options)),
      cuts_events_(way_ == Way::plain || way_ == Way::sized) {
  rule_.sizes.seed += epoch;
  // There is no load.
  if (rule_.sizes.by == SizeRule::By::adaptive) rule_.sizes.by = SizeRule::By::fixed;
  if (options.mode == PlanMode::returnn_torch) returnn_ = Returnn::torch;
  const Spec& spec = rule_.spec;
  if (way_ == Way::plain)
    reach_ = (std::uint64_t{spec.size} + spec.right - 1) / spec.step_of(spec.size) + 1;
}

RowCounts StreamCutter::counts(const StreamRef& stream) const {
  switch (way(stream)) {
    case Way::whole:
      return {.framed = stream.frames > 0 ? 1u : 0u, .frames = stream.frames, .marker = false};
    case Way::chunks: return count_chunks(returnn_, rule_.spec, stream.frames);
    case Way::plain: return count_rows(rule_.spec, stream.frames);
    case Way::sized: return count_rows(sized_rows(stream));
    case Way::events: {
      EventRows rows = event_rows(stream);
      return count_rows(rows);
    }
  }
  return {};
}

Row StreamCutter::row_at(const StreamRef& stream, std::uint64_t framed, std::uint64_t j) const {
  RowCounts counts{.framed = framed};
  switch (way_) {
    case Way::whole: return whole_stream(stream.frames);
    case Way::chunks: return chunk_at(rule_.spec, stream.frames, counts, j);
    default: break;
  }
  counts.marker = has_marker(rule_.spec, stream.frames, framed);
  assert(way(stream) == Way::plain);
  return millrace::row_at(rule_.spec, stream.frames, counts, j);
}

Row StreamCutter::row_inside(std::uint64_t j) const {
  return millrace::row_at(rule_.spec, max_position, {.framed = j + 1, .marker = true}, j);
}

SizedRows StreamCutter::sized_rows(const StreamRef& stream) const {
  return SizedRows(rule_, catalog_.name(stream.stream), stream.frames);
}

EventRows StreamCutter::event_rows(const StreamRef& stream) const {
  return EventRows(rule_, catalog_.name(stream.stream), catalog_.events(stream.stream),
                   stream.frames);
}

}  // namespace millrace::training
