// SPDX-License-Identifier: Apache-2.0
#include "chunker/row_arithmetic.h"

#include <algorithm>
#include <cassert>

namespace millrace {
namespace {

// Body 0 begins at 0. Body k >= 1 begins at `second` + (k - 1) * `step`, and has `size` frames.
struct Bodies {
  explicit Bodies(const Spec& spec)
      : first(spec.first_body(spec.size)),
        size(spec.size),
        second(spec.advance(true, spec.size)),
        step(spec.step_of(spec.size)) {}

  std::uint64_t begin(std::uint64_t k) const { return k == 0 ? 0 : second + (k - 1) * step; }
  std::uint64_t length(std::uint64_t k) const { return k == 0 ? first : size; }
  std::uint64_t end(std::uint64_t k) const { return begin(k) + length(k); }

  // The number of bodies k >= 1 with begin(k) <= limit.
  std::uint64_t begun(std::uint64_t limit) const {
    return limit < second ? 0 : (limit - second) / step + 1;
  }
  // The number of bodies k >= 1 with end(k) <= limit.
  std::uint64_t ended(std::uint64_t limit) const { return limit < size ? 0 : begun(limit - size); }

  std::uint64_t first, size, second, step;
};

// The number of bodies that are not cut.
std::uint64_t whole_bodies(const Bodies& bodies, std::uint64_t frames) {
  return frames < bodies.first ? 0 : 1 + bodies.ended(frames);
}

// The number of bodies, cut ones included. Each condition holds for a number of bodies from the
// first on, so the fewest count.
std::uint64_t all_bodies(const Spec& spec, const Bodies& bodies, std::uint64_t frames) {
  const std::uint64_t whole = whole_bodies(bodies, frames);
  if (spec.tail == Spec::Tail::drop || frames == 0) return whole;
  const std::uint64_t shortest = std::max(spec.min, 1u);
  std::uint64_t later = frames < shortest ? 0 : bodies.begun(frames - shortest);
  if (spec.tail == Spec::Tail::cover) {
    const std::uint64_t uncovered = frames <= bodies.first ? 0 : 1 + bodies.ended(frames - 1);
    later = std::min(later, uncovered);
  }
  return std::max(whole, 1 + later);
}

// The frames of `count` bodies, of which `whole` are not cut. Cut bodies end together.
std::uint64_t frames_of(const Bodies& bodies, std::uint64_t frames, std::uint64_t whole,
                        std::uint64_t count) {
  if (count == 0) return 0;
  const std::uint64_t before = whole == 0 ? frames : bodies.first + (whole - 1) * bodies.size;
  const std::uint64_t from = std::max<std::uint64_t>(whole, 1);
  const std::uint64_t cut = count - from;
  if (cut == 0) return before;
  return before + cut * (frames - bodies.begin(from)) - bodies.step * (cut * (cut - 1) / 2);
}

}  // namespace

RowCounts count_rows(const Spec& spec, std::uint64_t frames) {
  const Bodies bodies(spec);
  RowCounts counts;
  counts.framed = all_bodies(spec, bodies, frames);
  counts.frames = frames_of(bodies, frames, whole_bodies(bodies, frames), counts.framed);
  counts.marker = has_marker(spec, frames, counts.framed);
  return counts;
}

// A row that was complete before the end cannot carry END.
bool has_marker(const Spec& spec, std::uint64_t frames, std::uint64_t framed) {
  return framed == 0 || Bodies(spec).end(framed - 1) + spec.right <= frames;
}

std::uint64_t rows_of(const Spec& spec, std::uint64_t frames) {
  return count_rows(spec, frames).rows();
}

std::uint64_t most_left_out(const ChunkRule& rule) {
  const Spec& spec = rule.spec;
  if (spec.tail == Spec::Tail::drop) return rule.width() - spec.left - spec.right - 1;
  const bool overlap = spec.step > 0 && spec.step < spec.size;
  const std::uint32_t covered =
      spec.tail == Spec::Tail::cover && overlap ? spec.size - spec.step : 0;
  return std::max(spec.min > 0 ? spec.min - 1 : 0, covered);
}

Row row_at(const Spec& spec, std::uint64_t frames, std::uint64_t j) {
  return row_at(spec, frames, count_rows(spec, frames), j);
}

Row row_at(const Spec& spec, std::uint64_t frames, const RowCounts& counts, std::uint64_t j) {
  assert(j < counts.rows());
  const Bodies bodies(spec);
  Row row;
  row.seq = j;
  if (j == 0) {
    row.flags = flag::start | flag::reset | flag::segment;
    row.reason = ResetReason::start;
  }
  if (j + 1 == counts.rows()) row.flags |= flag::last | flag::end;
  row.begin = j < counts.framed ? bodies.begin(j) : frames;
  if (j == counts.framed) return row;
  const std::uint64_t rest = frames - row.begin;
  row.size = static_cast<std::uint32_t>(std::min(bodies.length(j), rest));
  row.left = static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.left, row.begin));
  row.right = static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.right, rest - row.size));
  return row;
}

}  // namespace millrace
